import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsOptions;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.ListTransactionsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Does in transactions with the Java clients what applications and their keepers do, and prints what it saw: what it was
 * about, a tab, and how it went.
 *
 * <p>Prints nothing that differs from one run to the next. Arguments: the bootstrap address and a prefix for names. It
 * compiles with the clients of 3.9 and of 4.
 */
@SuppressWarnings("removal")
public class Transactions {
    static final Duration POLL = Duration.ofMillis(50);

    static String bootstrap;
    static String prefix;
    static Admin admin;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        prefix = arguments[1];
        try (Admin opened = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin = opened;
            say("transaction.version", admin.describeFeatures().featureMetadata().get().finalizedFeatures().get("transaction.version").maxVersionLevel());
            ledger();
            epochs();
            offsets();
            fencing();
            slow();
            described();
            aborted();
        }
    }

    /** Committed and aborted, over two partitions, and a plain record between. */
    static void ledger() throws Exception {
        String topic = create("ledger", 2);
        try (var producer = producer("ledger", "60000"); var plain = plain()) {
            producer.initTransactions();
            producer.beginTransaction();
            say("first", List.of(send(producer, topic, 0, "a"), send(producer, topic, 1, "b"), send(producer, topic, 0, "c")));
            producer.commitTransaction();
            producer.beginTransaction();
            say("aborted", List.of(send(producer, topic, 0, "d"), send(producer, topic, 1, "e")));
            producer.abortTransaction();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, null, "never sent for certain"));
            producer.abortTransaction();
            producer.beginTransaction();
            send(producer, topic, 1, "f");
            send(plain, topic, 1, "plain");
            say("open", read(topic, "read_committed") + " " + read(topic, "read_uncommitted").get(1));
            say("last stable offsets", ends(topic, IsolationLevel.READ_COMMITTED).get(1) + " of " + ends(topic, IsolationLevel.READ_UNCOMMITTED).get(1));
            producer.commitTransaction();
            say("committed", read(topic, "read_committed"));
        }
    }

    /** The epoch rises with each transaction, or stays. */
    static void epochs() throws Exception {
        String topic = create("epochs", 1);
        try (var producer = producer("epochs", "60000")) {
            producer.initTransactions();
            List<Integer> epochs = new ArrayList<>();
            List<String> seen = new ArrayList<>();
            for (int number = 0; number < 6; number++) {
                producer.beginTransaction();
                send(producer, topic, 0, "" + number);
                epochs.add(describe("epochs").producerEpoch());
                if (number % 3 == 2) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
                seen.add(ended("epochs"));
            }
            say("epochs", epochs);
            say("states", seen);
            say("of six", read(topic, "read_committed"));
        }
    }

    static void offsets() throws Exception {
        String topic = create("offsets", 2);
        String group = prefix + "group";
        var places = List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1));
        try (var plain = plain(); var producer = producer("offsets", "60000"); var member = consumer("read_committed", "group.id", group)) {
            send(plain, topic, 0, "x");
            member.subscribe(List.of(topic));
            await(() -> {
                member.poll(POLL);
                return member.assignment().size();
            }, 2);
            producer.initTransactions();
            producer.beginTransaction();
            producer.sendOffsetsToTransaction(Map.of(places.get(0), new OffsetAndMetadata(7, "a note"), places.get(1), new OffsetAndMetadata(8)), member.groupMetadata());
            producer.commitTransaction();
            say("offsets committed", ended("offsets") + " " + committed(group));
            producer.beginTransaction();
            producer.sendOffsetsToTransaction(Map.of(places.get(0), new OffsetAndMetadata(9)), member.groupMetadata());
            producer.abortTransaction();
            say("offsets aborted", ended("offsets") + " " + committed(group));
            producer.beginTransaction();
            var stale = new ConsumerGroupMetadata(group, member.groupMetadata().generationId() + 1, member.groupMetadata().memberId(), java.util.Optional.empty());
            say("wrong generation", failure(() -> producer.sendOffsetsToTransaction(Map.of(places.get(0), new OffsetAndMetadata(10)), stale)));
            producer.abortTransaction();
            producer.beginTransaction();
            producer.sendOffsetsToTransaction(Map.of(places.get(1), new OffsetAndMetadata(11)), new ConsumerGroupMetadata(prefix + "simple"));
            send(producer, topic, 1, "y");
            producer.commitTransaction();
            say("offsets of no member", ended("offsets") + " " + committed(prefix + "simple"));
        }
    }

    static void fencing() throws Exception {
        String topic = create("fencing", 1);
        try (var zombie = producer("fencing", "60000"); var successor = producer("fencing", "60000")) {
            zombie.initTransactions();
            zombie.beginTransaction();
            send(zombie, topic, 0, "zombie");
            successor.initTransactions();
            successor.beginTransaction();
            send(successor, topic, 0, "successor");
            say("zombie sends", failure(() -> send(zombie, topic, 0, "late")));
            say("zombie commits", failure(zombie::commitTransaction));
            successor.commitTransaction();
            successor.beginTransaction();
            send(successor, topic, 0, "to be fenced");
            admin.fenceProducers(List.of(prefix + "fencing")).all().get();
            say("fenced by an admin", failure(successor::commitTransaction));
            say("after fencing", read(topic, "read_committed"));
        }
    }

    static void slow() throws Exception {
        String topic = create("slow", 1);
        try (var producer = producer("slow", "500")) {
            producer.initTransactions();
            producer.beginTransaction();
            send(producer, topic, 0, "slow");
            say("timed out", await(() -> describe("slow").state().toString(), "CompleteAbort"));
            say("too late", failure(producer::commitTransaction));
        }
        try (var producer = producer("slow", "60000")) {
            producer.initTransactions();
            producer.beginTransaction();
            send(producer, topic, 0, "in time");
            producer.commitTransaction();
        }
        say("after the time-out", read(topic, "read_committed"));
        try (var producer = producer("slow", "2000000")) {
            say("beyond the limit", failure(producer::initTransactions));
        }
    }

    static void described() throws Exception {
        String topic = create("described", 2);
        String id = prefix + "described";
        try (var producer = producer("described", "54321")) {
            producer.initTransactions();
            say("initialized", told(describe("described")));
            producer.beginTransaction();
            send(producer, topic, 0, "x");
            send(producer, topic, 1, "y");
            var open = describe("described");
            say("ongoing", told(open) + " " + (open.transactionStartTimeMs().orElse(-1) > 0));
            var ongoing = new ListTransactionsOptions().filterStates(Set.of(TransactionState.ONGOING));
            var ofProducer = new ListTransactionsOptions().filterProducerIds(Set.of(open.producerId()));
            var old = new ListTransactionsOptions().filterOnDuration(3_600_000);
            say("listed", List.of(listed(new ListTransactionsOptions(), id), listed(ongoing, id), listed(ofProducer, id), listed(old, id)));
            ProducerState state = active(new TopicPartition(topic, 1));
            say("active", List.of(state.producerId() == open.producerId(), state.producerEpoch() == open.producerEpoch(), state.lastSequence(),
                state.currentTransactionStartOffset().orElse(-1)));
            producer.commitTransaction();
            say("done", ended("described") + " " + active(new TopicPartition(topic, 1)).currentTransactionStartOffset().isPresent());
        }
        say("unknown id", failure(() -> admin.describeTransactions(List.of(prefix + "nobody")).all().get()));
    }

    /** What an admin aborts on one partition is aborted there, whatever the coordinator thinks of it. */
    static void aborted() throws Exception {
        String topic = create("aborted", 2);
        var place = new TopicPartition(topic, 0);
        try (var producer = producer("aborted", "60000")) {
            producer.initTransactions();
            producer.beginTransaction();
            send(producer, topic, 0, "x");
            send(producer, topic, 1, "y");
            ProducerState state = active(place);
            admin.abortTransaction(new AbortTransactionSpec(place, state.producerId(), (short) state.producerEpoch(), state.coordinatorEpoch().orElse(0))).all().get();
            say("last stable offsets of the aborted", ends(topic, IsolationLevel.READ_COMMITTED));
            producer.abortTransaction();
            say("ended", ended("aborted"));
            say("ends of the aborted", ends(topic, IsolationLevel.READ_COMMITTED));
        }
    }

    // ------------------------------------------------------------ helpers

    interface Attempt {
        void make() throws Exception;
    }

    static String failure(Attempt attempt) throws Exception {
        try {
            attempt.make();
            return "none";
        } catch (ExecutionException failed) {
            return failed.getCause().getClass().getSimpleName();
        } catch (KafkaException failed) {
            var cause = failed.getCause() instanceof KafkaException && failed.getClass() == KafkaException.class ? failed.getCause() : failed;
            return cause.getClass().getSimpleName();
        }
    }

    static <T> T await(Supplier<T> look, T wanted) throws Exception {
        long deadline = System.nanoTime() + 30_000_000_000L;
        while (true) {
            T seen = look.get();
            if (seen.equals(wanted) || System.nanoTime() > deadline) {
                return seen;
            }
            Thread.sleep(5);
        }
    }

    static String create(String name, int partitions) throws Exception {
        String topic = prefix + name;
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
        return topic;
    }

    static long send(KafkaProducer<String, String> producer, String topic, int partition, String value) throws Exception {
        return producer.send(new ProducerRecord<>(topic, partition, null, value)).get().offset();
    }

    /** Values by partition, in order, up to where this reader may go. */
    static List<List<String>> read(String topic, String isolation) throws Exception {
        try (var consumer = consumer(isolation)) {
            var places = consumer.partitionsFor(topic).stream().map(each -> new TopicPartition(topic, each.partition())).sorted((a, b) -> a.partition() - b.partition()).toList();
            consumer.assign(places);
            consumer.seekToBeginning(places);
            var ends = consumer.endOffsets(places);
            List<List<String>> values = places.stream().map(each -> (List<String>) new ArrayList<String>()).toList();
            await(() -> {
                consumer.poll(POLL).forEach(each -> values.get(each.partition()).add(each.offset() + ":" + each.value()));
                return places.stream().allMatch(each -> consumer.position(each) >= ends.get(each));
            }, true);
            return values;
        }
    }

    static List<Long> ends(String topic, IsolationLevel isolation) throws Exception {
        List<Long> ends = new ArrayList<>();
        for (int partition = 0; partition < 2; partition++) {
            var place = new TopicPartition(topic, partition);
            ends.add(admin.listOffsets(Map.of(place, OffsetSpec.latest()), new ListOffsetsOptions(isolation)).partitionResult(place).get().offset());
        }
        return ends;
    }

    static String committed(String group) throws Exception {
        var offsets = admin.listConsumerGroupOffsets(group, new ListConsumerGroupOffsetsOptions().requireStable(true)).partitionsToOffsetAndMetadata().get();
        return offsets.entrySet().stream().collect(Collectors.toMap(each -> each.getKey().partition(), each -> each.getValue().offset() + each.getValue().metadata(),
            (a, b) -> a, TreeMap::new)).toString();
    }

    static TransactionDescription describe(String name) {
        try {
            return admin.describeTransactions(List.of(prefix + name)).description(prefix + name).get();
        } catch (InterruptedException | ExecutionException failed) {
            throw new IllegalStateException(failed);
        }
    }

    /** The state once nothing is to be done any more. */
    static String ended(String name) throws Exception {
        await(() -> describe(name).state().toString().startsWith("Complete"), true);
        return describe(name).state().toString();
    }

    static String told(TransactionDescription described) {
        return described.state() + " " + described.transactionTimeoutMs() + " " + described.topicPartitions().stream().map(TopicPartition::partition).sorted().toList();
    }

    static String listed(ListTransactionsOptions options, String id) throws Exception {
        return admin.listTransactions(options).all().get().stream().filter(each -> each.transactionalId().equals(id)).map(each -> each.state().toString()).toList().toString();
    }

    static ProducerState active(TopicPartition place) throws Exception {
        return admin.describeProducers(List.of(place)).partitionResult(place).get().activeProducers().get(0);
    }

    static KafkaProducer<String, String> plain() {
        return new KafkaProducer<>(properties(), new StringSerializer(), new StringSerializer());
    }

    static KafkaProducer<String, String> producer(String name, String timeout) {
        return new KafkaProducer<>(properties("transactional.id", prefix + name, "transaction.timeout.ms", timeout), new StringSerializer(), new StringSerializer());
    }

    static KafkaConsumer<String, String> consumer(String isolation, String... settings) {
        var properties = properties(settings);
        properties.put("isolation.level", isolation);
        properties.put("enable.auto.commit", "false");
        return new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
    }

    static Properties properties(String... settings) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("fetch.max.wait.ms", "50");
        properties.put("retry.backoff.ms", "20");
        for (int index = 0; index < settings.length; index += 2) {
            properties.put(settings[index], settings[index + 1]);
        }
        return properties;
    }

    static void say(String what, Object outcome) {
        System.out.println(what + "\t" + outcome);
    }
}
