// franz-go against a broker: go run . BOOTSTRAP TOPIC writes, reads in a group of two, administers, brings records from
// topic to topic in transactions, and prints what it saw as one object of JSON. With BOOTSTRAP SOURCE TARGET GROUP ID it is
// a pipeline that does nothing but that; with BOOTSTRAP TOPIC newer it tries groups of the newer kinds; with secured
// SETTINGS TOPIC COUNT it connects as a file of JSON says; with registry URL it asks a schema registry.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const partitions = 4

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

type seen struct {
	Retention  string          `json:"retention"`  // as described after the topic was made with it
	Values     map[string]int  `json:"values"`     // each value that the group read, and how often
	Headers    int             `json:"headers"`    // records whose header came back
	Shares     []int           `json:"shares"`     // partitions of each member, once both are in
	Protocol   string          `json:"protocol"`   // the assignor that the group agreed on
	Ends       map[int32]int64 `json:"ends"`       // each partition's end offset
	Lag        int64           `json:"lag"`        // of the group, once all is committed
	Emptied    string          `json:"emptied"`    // the group's state after both have left
	Starts     int64           `json:"starts"`     // partition 0's start after DeleteRecords before 2
	Transacted transacted      `json:"transacted"` // see there
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func bootstrap() string {
	return os.Args[1]
}

func client(options ...kgo.Opt) *kgo.Client {
	common := []kgo.Opt{kgo.SeedBrokers(bootstrap()), kgo.MetadataMinAge(50 * time.Millisecond)}
	made, err := kgo.NewClient(append(common, options...)...)
	must(err)
	return made
}

// write sends ten records to each partition in each codec, idempotently, as franz-go does unless told otherwise.
func write(ctx context.Context, topic string) {
	for name, codec := range codecs {
		producer := client(kgo.ProducerBatchCompression(codec), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		for n := range 10 * partitions {
			record := &kgo.Record{
				Topic: topic, Partition: int32(n % partitions), Value: fmt.Appendf(nil, "%s-%d", name, n),
				Headers: []kgo.RecordHeader{{Key: "codec", Value: []byte(name)}},
			}
			producer.Produce(ctx, record, func(_ *kgo.Record, err error) { must(err) })
		}
		must(producer.Flush(ctx))
		producer.Close()
	}
}

// read has two members with a pattern and the cooperative assignor share the topic until all is read and they agree.
func read(ctx context.Context, admin *kadm.Client, topic, group string, found *seen) {
	var lock sync.Mutex
	var members []*kgo.Client
	for range 2 {
		member := client(
			kgo.ConsumerGroup(group), kgo.ConsumeRegex(), kgo.ConsumeTopics("^"+topic+"$"),
			kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
			kgo.HeartbeatInterval(200*time.Millisecond), kgo.FetchMaxWait(200*time.Millisecond),
		)
		members = append(members, member)
		go func() {
			for fetches := member.PollFetches(ctx); !fetches.IsClientClosed(); fetches = member.PollFetches(ctx) {
				fetches.EachError(func(_ string, _ int32, err error) { must(err) })
				lock.Lock()
				fetches.EachRecord(func(record *kgo.Record) {
					found.Values[string(record.Value)]++
					if len(record.Headers) == 1 && record.Headers[0].Key == "codec" {
						found.Headers++
					}
				})
				lock.Unlock()
			}
		}()
	}
	for all := false; !all; time.Sleep(50 * time.Millisecond) {
		must(ctx.Err())
		described, err := admin.DescribeGroups(ctx, group)
		if err != nil {
			continue // Apache Kafka has no coordinator until it has made __consumer_offsets.
		}
		lock.Lock()
		all = len(found.Values) == 10*partitions*len(codecs)
		lock.Unlock()
		found.Shares, found.Protocol = nil, described[group].Protocol
		for _, member := range described[group].Members {
			if assigned, ok := member.Assigned.AsConsumer(); ok && len(assigned.Topics) == 1 {
				found.Shares = append(found.Shares, len(assigned.Topics[0].Partitions))
			}
		}
		all = all && described[group].State == "Stable" && len(found.Shares) == 2
		for _, share := range found.Shares {
			all = all && share == partitions/2
		}
	}
	for _, member := range members {
		must(member.CommitUncommittedOffsets(ctx))
		member.CloseAllowingRebalance()
	}
}

func main() {
	if os.Args[1] == "registry" {
		registry(os.Args[2])
		return
	}
	if len(os.Args) == 6 {
		pipeline(context.Background(), os.Args[2], os.Args[3], os.Args[4], os.Args[5])
	}
	if len(os.Args) == 5 {
		count, err := strconv.Atoi(os.Args[4])
		must(err)
		secured(os.Args[2], os.Args[3], count)
		return
	}
	if len(os.Args) == 4 {
		newerGroups(os.Args[2])
		return
	}
	topic, group := os.Args[2], os.Args[2]+"-group"
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	found := seen{Values: map[string]int{}, Ends: map[int32]int64{}}
	admin := kadm.NewClient(client())
	_, err := admin.CreateTopic(ctx, partitions, 1, map[string]*string{"retention.ms": kadm.StringPtr("99999999")}, topic)
	must(err)
	configs, err := admin.DescribeTopicConfigs(ctx, topic)
	must(err)
	for _, config := range configs[0].Configs {
		if config.Key == "retention.ms" {
			found.Retention = *config.Value
		}
	}

	write(ctx, topic)
	read(ctx, admin, topic, group, &found)

	ends, err := admin.ListEndOffsets(ctx, topic)
	must(err)
	ends.Each(func(end kadm.ListedOffset) { found.Ends[end.Partition] = end.Offset })
	lags, err := admin.Lag(ctx, group)
	must(err)
	lag := lags[group]
	must(lag.Error())
	found.Lag, found.Emptied = lag.Lag.Total(), lag.State
	_, err = admin.DeleteRecords(ctx, kadm.Offsets{topic: {0: {Topic: topic, Partition: 0, At: 2}}})
	must(err)
	starts, err := admin.ListStartOffsets(ctx, topic)
	must(err)
	start, _ := starts.Lookup(topic, 0)
	found.Starts = start.Offset
	_, err = admin.DeleteGroup(ctx, group)
	must(err)
	found.Transacted = transact(ctx, admin, topic)
	_, err = admin.DeleteTopic(ctx, topic)
	must(err)
	must(json.NewEncoder(os.Stdout).Encode(found))
}
