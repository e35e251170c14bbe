package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

type transacted struct {
	Outputs   map[int32][]string `json:"outputs"`   // each output's offset and value, as who reads what is committed sees it
	Committed map[int32]int64    `json:"committed"` // the group's offsets
	Ended     map[string]int     `json:"ended"`     // how many transactions were committed, how many aborted
	Ongoing   string             `json:"ongoing"`   // an open one as an admin lists it, by a pattern of its id
	Finally   string             `json:"finally"`   // and what becomes of it
	Rises     bool               `json:"rises"`     // whether the producer's epoch is another after a transaction
	Fenced    string             `json:"fenced"`    // what a producer hears that has a successor
}

// transact has a group's member bring each record from one topic to another in transactions, every other of which is aborted.
func transact(ctx context.Context, admin *kadm.Client, topic string) transacted {
	from, to, group := topic+"-from", topic+"-to", topic+"-transactional"
	_, err := admin.CreateTopics(ctx, 2, 1, nil, from, to)
	must(err)
	source := client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer source.Close()
	for n := range 20 {
		must(source.ProduceSync(ctx, &kgo.Record{Topic: from, Partition: int32(n % 2), Value: fmt.Append(nil, n)}).FirstErr())
	}
	found := transacted{Outputs: map[int32][]string{}, Committed: map[int32]int64{}, Ended: map[string]int{}}
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(bootstrap()), kgo.MetadataMinAge(50*time.Millisecond), kgo.TransactionalID(topic+"-session"),
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(from), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.FetchMaxWait(200*time.Millisecond),
	)
	must(err)
	for done := 0; done < 20; {
		must(ctx.Err())
		records := session.PollRecords(ctx, 3).Records()
		must(session.Begin())
		for _, record := range records {
			must(session.ProduceSync(ctx, &kgo.Record{Topic: to, Partition: record.Partition, Value: record.Value}).FirstErr())
		}
		committed, err := session.End(ctx, kgo.TransactionEndTry(found.Ended["aborted"] > found.Ended["committed"]))
		must(err)
		if committed {
			done += len(records)
			found.Ended["committed"]++
		} else {
			found.Ended["aborted"]++
		}
	}
	session.Close()
	ends, err := admin.ListCommittedOffsets(ctx, to)
	must(err)
	reader := client(kgo.ConsumeTopics(to), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for count := 0; count < 20; {
		must(ctx.Err())
		reader.PollFetches(ctx).EachRecord(func(record *kgo.Record) {
			found.Outputs[record.Partition] = append(found.Outputs[record.Partition], string(record.Value))
			end, _ := ends.Lookup(to, record.Partition)
			if record.Offset >= end.Offset {
				must(fmt.Errorf("%d is beyond what is committed, %d", record.Offset, end.Offset))
			}
			count++
		})
	}
	reader.Close()
	offsets, err := admin.FetchOffsets(ctx, group)
	must(err)
	offsets.Each(func(offset kadm.OffsetResponse) { found.Committed[offset.Partition] = offset.At })
	open(ctx, admin, topic, to, &found)
	return found
}

// open leaves a transaction open for an admin to look at, and ends it; then another producer takes over its id.
func open(ctx context.Context, admin *kadm.Client, topic, to string, found *transacted) {
	id := topic + "-open"
	transactional := func() *kgo.Client {
		return client(kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	zombie := transactional()
	defer zombie.Close()
	write := func(producer *kgo.Client) error {
		must(producer.BeginTransaction())
		return producer.ProduceSync(ctx, &kgo.Record{Topic: to, Partition: 1, Value: []byte("open")}).FirstErr()
	}
	must(write(zombie))
	listed, err := admin.ListTransactionsByTxPattern(ctx, nil, []string{"Ongoing"}, ".*"+id)
	must(err)
	active, err := admin.DescribeProducers(ctx, kadm.TopicsSet{to: {1: {}}})
	must(err)
	writing := 0
	for _, producer := range active[to].Partitions[1].ActiveProducers {
		if producer.CurrentTxnStartOffset >= 0 && producer.ProducerID == listed[id].ProducerID {
			writing++
		}
	}
	found.Ongoing = fmt.Sprintf("%d %s %d", len(listed), listed[id].State, writing)
	before, err := admin.DescribeTransactions(ctx, id)
	must(err)
	must(zombie.EndTransaction(ctx, kgo.TryAbort))
	for found.Finally = "PrepareAbort"; found.Finally == "PrepareAbort"; {
		described, err := admin.DescribeTransactions(ctx, id)
		must(err)
		must(ctx.Err())
		found.Finally = described[id].State
		found.Rises = described[id].ProducerEpoch > before[id].ProducerEpoch
	}
	successor := transactional()
	defer successor.Close()
	must(write(successor))
	if err := write(zombie); err != nil {
		found.Fenced = err.Error()
	} else if err := zombie.EndTransaction(ctx, kgo.TryCommit); err != nil {
		found.Fenced = err.Error()
	}
	must(successor.EndTransaction(ctx, kgo.TryCommit))
}
