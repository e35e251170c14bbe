package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// newer is what groups of the newer kinds come to: BOOTSTRAP TOPIC newer.
type newer struct {
	Heard     map[string]int  `json:"heard"`     // each value that two members of a consumer group read, and how often
	Shares    []int           `json:"shares"`    // partitions of each member of it
	Assignor  string          `json:"assignor"`  // the broker's
	Listed    bool            `json:"listed"`    // as a consumer group
	Committed int64           `json:"committed"` // the offsets of the consumer group, all partitions together
	Taken     map[string]int  `json:"taken"`     // each value of the share group, and how often it was delivered
	Emptied   []string        `json:"emptied"`   // the states of both groups when their members have left
	Starts    map[int32]int64 `json:"starts"`    // where the share group goes on, once that was altered
	Deleted   []string        `json:"deleted"`   // which of both groups are gone
}

// newerGroups has two members of a consumer group share the topic, then a share group whose first tries fail; the latter
// has been told to begin at the beginning.
func newerGroups(topic string) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	found := newer{Heard: map[string]int{}, Taken: map[string]int{}, Starts: map[int32]int64{}}
	admin := kadm.NewClient(client())
	_, err := admin.CreateTopic(ctx, partitions, 1, nil, topic)
	must(err)
	producer := client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for n := range 5 * partitions {
		record := &kgo.Record{Topic: topic, Partition: int32(n % partitions), Value: fmt.Appendf(nil, "%d", n)}
		must(producer.ProduceSync(ctx, record).FirstErr())
	}
	producer.Close()
	consumer, share := topic+"-consumer", topic+"-share"
	consumed(ctx, admin, topic, consumer, &found)
	shared(ctx, topic, share, &found)

	committed, err := admin.FetchOffsets(ctx, consumer)
	must(err)
	committed.Each(func(each kadm.OffsetResponse) { found.Committed += each.At })
	consumers, err := admin.DescribeConsumerGroups(ctx, consumer)
	must(err)
	shares, err := admin.DescribeShareGroups(ctx, share)
	must(err)
	found.Emptied = []string{consumers[consumer].State, shares[share].GroupState}
	altered, err := admin.AlterShareGroupOffsets(ctx, share, kadm.Offsets{topic: {0: {Topic: topic, Partition: 0, At: 2}}})
	must(err)
	must(altered.Error())
	offsets, err := admin.DescribeShareGroupOffsets(ctx, share)
	must(err)
	must(offsets.Error())
	for partition, offset := range offsets[share].Offsets[topic] {
		found.Starts[partition] = offset.StartOffset
	}
	deleted, err := admin.DeleteGroups(ctx, consumer, share)
	must(err)
	for _, each := range deleted.Sorted() {
		must(each.Err)
		found.Deleted = append(found.Deleted, each.Group[len(topic):])
	}
	must(json.NewEncoder(os.Stdout).Encode(found))
}

func consumed(ctx context.Context, admin *kadm.Client, topic, group string, found *newer) {
	var lock sync.Mutex
	var members []*kgo.Client
	for range 2 {
		member := client(
			kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(200*time.Millisecond), kgo.DisableAutoCommit(),
		)
		members = append(members, member)
		go func() {
			for fetches := member.PollFetches(ctx); !fetches.IsClientClosed(); fetches = member.PollFetches(ctx) {
				fetches.EachError(func(_ string, _ int32, err error) { must(err) })
				lock.Lock()
				fetches.EachRecord(func(record *kgo.Record) { found.Heard[string(record.Value)]++ })
				lock.Unlock()
				must(member.CommitUncommittedOffsets(ctx))
			}
		}()
	}
	for all := false; !all; time.Sleep(20 * time.Millisecond) {
		must(ctx.Err())
		described, err := admin.DescribeConsumerGroups(ctx, group)
		if err != nil || described[group].Err != nil {
			continue // nobody has joined yet
		}
		lock.Lock()
		all = len(found.Heard) == 5*partitions
		lock.Unlock()
		found.Shares, found.Assignor = nil, described[group].AssignorName
		for _, member := range described[group].Members {
			found.Shares = append(found.Shares, len(member.Assignment[topic]))
		}
		all = all && described[group].State == "Stable" && len(found.Shares) == 2
		for _, part := range found.Shares {
			all = all && part == partitions/2
		}
	}
	listed, err := admin.ListGroupsByType(ctx, []string{"consumer"})
	must(err)
	_, found.Listed = listed[group]
	for _, member := range members {
		must(member.CommitUncommittedOffsets(ctx))
		member.Close()
	}
}

// shared has one member release what it gets for the first time, and accept it then.
func shared(ctx context.Context, topic, group string, found *newer) {
	member := client(
		kgo.ShareGroup(group), kgo.ConsumeTopics(topic), kgo.FetchMaxWait(200*time.Millisecond),
		kgo.ShareAckCallback(func(_ *kgo.Client, results kgo.ShareAckResults) { must(results.Error()) }),
	)
	for done := 0; done < 5*partitions; {
		fetches := member.PollFetches(ctx)
		fetches.EachError(func(_ string, _ int32, err error) { must(err) })
		fetches.EachRecord(func(record *kgo.Record) {
			found.Taken[string(record.Value)]++
			if record.DeliveryCount() == 1 {
				record.Ack(kgo.AckRelease)
			} else {
				record.Ack(kgo.AckAccept)
				done++
			}
		})
	}
	must(member.FlushAcks(ctx))
	member.Close()
	sort.Ints(found.Shares)
}
