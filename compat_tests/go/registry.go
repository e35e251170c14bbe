package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
)

const (
	drink = `{"type":"record","name":"Drink","fields":[{"name":"name","type":"string"}]}`
	sized = `{"type":"record","name":"Drink","fields":[{"name":"name","type":"string"},{"name":"size","type":"int"}]}`
	cup   = `syntax = "proto3"; message Cup { int32 size = 1; }`
	table = `syntax = "proto3"; import "cup.proto"; message Table { Cup cup = 1; }`
)

type registered struct {
	Created    sr.SubjectSchema `json:"created"`
	Latest     sr.SubjectSchema `json:"latest"`
	ByGUID     sr.SubjectSchema `json:"by_guid"`
	Lookup     int              `json:"lookup"`     // the version that a schema is found as
	Refused    int              `json:"refused"`    // the code of an incompatible schema
	Compatible []bool           `json:"compatible"` // as checked under BACKWARD, and under FORWARD
	Level      string           `json:"level"`
	Modes      []string         `json:"modes"` // of the subject, and of all
	Usages     []string         `json:"usages"`
	References []string         `json:"references"` // subjects that refer to cup.proto
	Unremoved  []int            `json:"unremoved"`  // the codes of deletions that are refused
	Removed    []int            `json:"removed"`
	Subjects   [][]string       `json:"subjects"` // without and with deleted ones
	Missing    []int            `json:"missing"`  // the codes for what is not there
	Imported   sr.SubjectSchema `json:"imported"`
	Contexts   []string         `json:"contexts"`
	Types      []sr.SchemaType  `json:"types"`
}

// codeOf returns the code of the registry's error, 0 for none.
func codeOf(err error) int {
	var answer *sr.ResponseError
	if errors.As(err, &answer) {
		return answer.ErrorCode
	}
	must(err)
	return 0
}

func subjectsOf(schemas []sr.SubjectSchema) []string {
	found := []string{}
	for _, each := range schemas {
		found = append(found, each.Subject)
	}
	return found
}

// registry tries what franz-go's client of registries can do.
func registry(url string) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	client, err := sr.NewClient(sr.URLs(url))
	must(err)
	found := registered{}
	found.Created, err = client.CreateSchema(ctx, "drinks-value", sr.Schema{Schema: drink})
	must(err)
	found.Latest, err = client.SchemaByVersion(ctx, "drinks-value", -1)
	must(err)
	found.ByGUID, err = client.SchemaByGUID(ctx, found.Created.GUID)
	must(err)
	same, err := client.LookupSchema(ctx, "drinks-value", sr.Schema{Schema: drink})
	must(err)
	found.Lookup = same.Version
	_, err = client.CreateSchema(ctx, "drinks-value", sr.Schema{Schema: sized})
	found.Refused = codeOf(err)
	for _, level := range []sr.CompatibilityLevel{sr.CompatBackward, sr.CompatForward} {
		must(client.SetCompatibility(ctx, sr.SetCompatibility{Level: level}, "drinks-value")[0].Err)
		checked, err := client.CheckCompatibility(ctx, "drinks-value", -1, sr.Schema{Schema: sized})
		must(err)
		found.Compatible = append(found.Compatible, checked.Is)
	}
	found.Level = client.Compatibility(ctx, "drinks-value")[0].Level.String()
	must(client.SetMode(ctx, sr.ModeReadOnly, "drinks-value")[0].Err)
	for _, each := range client.Mode(ctx, "drinks-value", sr.GlobalSubject) {
		must(each.Err)
		found.Modes = append(found.Modes, each.Mode.String())
	}
	must(client.ResetMode(ctx, "drinks-value")[0].Err)
	usages, err := client.SchemaUsagesByID(ctx, found.Created.ID)
	must(err)
	found.Usages = subjectsOf(usages)

	_, err = client.CreateSchema(ctx, "cups", sr.Schema{Schema: cup, Type: sr.TypeProtobuf})
	must(err)
	reference := sr.SchemaReference{Name: "cup.proto", Subject: "cups", Version: 1}
	importing := sr.Schema{Schema: table, Type: sr.TypeProtobuf, References: []sr.SchemaReference{reference}}
	_, err = client.CreateSchema(ctx, "tables", importing)
	must(err)
	referring, err := client.SchemaReferences(ctx, "cups", 1)
	must(err)
	found.References = subjectsOf(referring)
	_, err = client.DeleteSubject(ctx, "cups", sr.SoftDelete)
	found.Unremoved = append(found.Unremoved, codeOf(err))
	_, err = client.DeleteSubject(ctx, "none", sr.SoftDelete)
	found.Unremoved = append(found.Unremoved, codeOf(err))
	found.Removed, err = client.DeleteSubject(ctx, "tables", sr.SoftDelete)
	must(err)
	for _, each := range []context.Context{ctx, sr.WithParams(ctx, sr.ShowDeleted)} {
		subjects, err := client.Subjects(each)
		must(err)
		found.Subjects = append(found.Subjects, subjects)
	}
	_, err = client.SchemaByID(ctx, 99)
	found.Missing = append(found.Missing, codeOf(err))
	_, err = client.SchemaByVersion(ctx, "none", 1)
	found.Missing = append(found.Missing, codeOf(err))
	_, err = client.SchemaByVersion(ctx, "cups", 7)
	found.Missing = append(found.Missing, codeOf(err))

	must(client.SetMode(ctx, sr.ModeImport, "imported")[0].Err)
	found.Imported, err = client.CreateSchemaWithIDAndVersion(ctx, "imported", sr.Schema{Schema: sized}, 40, 7)
	must(err)
	found.Contexts, err = client.Contexts(ctx)
	must(err)
	found.Types, err = client.SupportedTypes(ctx)
	must(err)
	must(json.NewEncoder(os.Stdout).Encode(found))
}
