package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// connecting is how a client connects and logs in: the names of files of PEM, a mechanism and what that needs.
type connecting struct {
	Bootstrap, Authority, Certificate, Key string
	Mechanism, User, Password, Token       string
	ByToken                                bool // whether user and password are a delegation token's id and HMAC
}

type securedSeen struct {
	Values []string `json:"values"` // what the group read
	Offset int64    `json:"offset"` // and committed
}

// options are what the client must be told, beside its topics.
func (how connecting) options() []kgo.Opt {
	found := []kgo.Opt{kgo.SeedBrokers(how.Bootstrap), kgo.MetadataMinAge(50 * time.Millisecond)}
	if how.Authority != "" {
		pem, err := os.ReadFile(how.Authority)
		must(err)
		config := &tls.Config{RootCAs: x509.NewCertPool()}
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			must(errors.New("no certificate in " + how.Authority))
		}
		if how.Certificate != "" {
			own, err := tls.LoadX509KeyPair(how.Certificate, how.Key)
			must(err)
			config.Certificates = []tls.Certificate{own}
		}
		found = append(found, kgo.DialTLSConfig(config))
	}
	credentials := scram.Auth{User: how.User, Pass: how.Password, IsToken: how.ByToken}
	switch how.Mechanism {
	case "PLAIN":
		found = append(found, kgo.SASL(plain.Auth{User: how.User, Pass: how.Password}.AsMechanism()))
	case "SCRAM-SHA-256":
		found = append(found, kgo.SASL(credentials.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		found = append(found, kgo.SASL(credentials.AsSha512Mechanism()))
	case "OAUTHBEARER":
		found = append(found, kgo.SASL(oauth.Auth{Token: how.Token}.AsMechanism()))
	}
	return found
}

func (how connecting) client(options ...kgo.Opt) *kgo.Client {
	made, err := kgo.NewClient(append(how.options(), options...)...)
	must(err)
	return made
}

// secured writes an aborted and a committed transaction and reads what counts in a group.
func secured(file, topic string, count int) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var how connecting
	text, err := os.ReadFile(file)
	must(err)
	must(json.Unmarshal(text, &how))
	admin := kadm.NewClient(how.client())
	defer admin.Close()
	_, err = admin.CreateTopic(ctx, 1, 1, nil, topic)
	must(err)
	producer := how.client(kgo.TransactionalID(topic), kgo.DefaultProduceTopic(topic))
	must(producer.BeginTransaction())
	must(producer.ProduceSync(ctx, kgo.StringRecord("aborted")).FirstErr())
	must(producer.EndTransaction(ctx, kgo.TryAbort))
	must(producer.BeginTransaction())
	for n := range count {
		producer.Produce(ctx, kgo.StringRecord(fmt.Sprintf("%d %s", n, strings.Repeat("x", 10_000))), func(_ *kgo.Record, err error) { must(err) })
	}
	must(producer.Flush(ctx))
	must(producer.EndTransaction(ctx, kgo.TryCommit))
	producer.Close()
	consumer := how.client(
		kgo.ConsumerGroup(topic), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	found := securedSeen{}
	for len(found.Values) < count {
		must(ctx.Err())
		fetches := consumer.PollFetches(ctx)
		fetches.EachError(func(_ string, _ int32, err error) { must(err) })
		fetches.EachRecord(func(record *kgo.Record) { found.Values = append(found.Values, string(record.Value)) })
	}
	must(consumer.CommitUncommittedOffsets(ctx))
	consumer.Close()
	offsets, err := admin.FetchOffsets(ctx, topic)
	must(err)
	offset, _ := offsets.Lookup(topic, 0)
	found.Offset = offset.At
	must(json.NewEncoder(os.Stdout).Encode(found))
}
