package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// pipeline brings each record of a topic to the same partition of another, its offset before its value, with the group's
// offsets in the same transaction. It ends with an error at whatever it does not understand.
func pipeline(ctx context.Context, source, target, group, id string) {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(bootstrap()), kgo.MetadataMinAge(50*time.Millisecond), kgo.TransactionalID(id),
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(source), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(time.Second), kgo.HeartbeatInterval(200*time.Millisecond),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.FetchMaxWait(100*time.Millisecond),
	)
	must(err)
	// Else it would first write to abort what an earlier one left open, and the offsets in that keep it from reading first.
	_, _, err = session.Client().ProducerID(ctx)
	must(err)
	for {
		records := session.PollRecords(ctx, 1000).Records()
		if len(records) == 0 {
			continue
		}
		must(session.Begin())
		var outputs []*kgo.Record
		for _, record := range records {
			value := fmt.Appendf(nil, "%d:%s", record.Offset, record.Value)
			outputs = append(outputs, &kgo.Record{Topic: target, Partition: record.Partition, Value: value})
		}
		err = session.ProduceSync(ctx, outputs...).FirstErr()
		_, err = session.End(ctx, kgo.TransactionEndTry(err == nil))
		must(err)
	}
}
