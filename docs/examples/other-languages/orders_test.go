// Tests in Go against a broker of their own: go get github.com/twmb/franz-go && go test
package orders

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var ready struct {
	BootstrapServers string `json:"bootstrap_servers"`
	Admin            string `json:"admin"`
}

func TestMain(m *testing.M) {
	os.Exit(withBroker(m))
}

// withBroker runs the tests while a broker runs, which ends with them.
func withBroker(m *testing.M) int {
	folder, err := os.MkdirTemp("", "barnabas-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	command := os.Getenv("BARNABAS")
	if command == "" {
		command = "barnabas"
	}
	file := filepath.Join(folder, "ready.json")
	broker := exec.Command(command, "serve", "--dev", "--port", "0", "--ready-file", file,
		"--parent-pid", strconv.Itoa(os.Getpid()))
	if err := broker.Start(); err != nil {
		panic(err)
	}
	defer broker.Wait()
	defer broker.Process.Signal(os.Interrupt)
	for {
		if data, err := os.ReadFile(file); err == nil {
			if err := json.Unmarshal(data, &ready); err != nil {
				panic(err)
			}
			return m.Run()
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// admin asks the admin API, and reads its answer into found unless that is nil.
func admin(t *testing.T, method, path string, body, found any) {
	t.Helper()
	data, _ := json.Marshal(body)
	request, _ := http.NewRequest(method, ready.Admin+path, bytes.NewReader(data))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	told, _ := io.ReadAll(answer.Body)
	if answer.StatusCode >= 400 {
		t.Fatalf("%s %s: %s", method, path, told)
	}
	if found != nil {
		if err := json.Unmarshal(told, found); err != nil {
			t.Fatal(err)
		}
	}
}

type object = map[string]any

func publish(t *testing.T, value string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(ready.BootstrapServers), kgo.ClientID("shop"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	record := &kgo.Record{Topic: "orders", Key: []byte("ann"), Value: []byte(value)}
	if err := client.ProduceSync(context.Background(), record).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func records(t *testing.T) (found []object) {
	admin(t, "GET", "/topics/orders/records", nil, &found)
	return found
}

func TestAnOrderIsPublished(t *testing.T) {
	admin(t, "POST", "/reset", nil, nil)
	admin(t, "POST", "/topics", object{"name": "orders"}, nil)
	publish(t, "tea")
	if found := records(t); len(found) != 1 || found[0]["value"] != "tea" {
		t.Fatal(found)
	}
}

func TestAnOrderSurvivesALeaderThatMoves(t *testing.T) {
	admin(t, "POST", "/reset", nil, nil)
	admin(t, "POST", "/topics", object{"name": "orders"}, nil)
	var rule struct{ Id, Hits int }
	admin(t, "POST", "/faults", object{"api": "Produce", "nth": 1, "error": "NOT_LEADER_OR_FOLLOWER"}, &rule)
	publish(t, "tea")
	admin(t, "GET", fmt.Sprintf("/faults/%d", rule.Id), nil, &rule)
	if found := records(t); rule.Hits != 1 || len(found) != 1 {
		t.Fatal(rule, found)
	}
}

func TestOrdersAreKeptForAnHour(t *testing.T) {
	admin(t, "POST", "/reset", nil, nil)
	admin(t, "POST", "/topics", object{"name": "orders", "configs": object{"retention.ms": 3600000}}, nil)
	publish(t, "tea")
	admin(t, "POST", "/clock/advance", object{"hours": 7}, nil)
	if found := records(t); len(found) != 0 {
		t.Fatal(found)
	}
}
