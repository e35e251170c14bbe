import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * What KafkaConsumer does with group.protocol=consumer, in the release that it is compiled with, and what an admin sees of
 * it: what it was about, a tab, and how it went.
 *
 * <p>Prints nothing that differs from one run to the next. Arguments: the bootstrap address and a prefix for names. It
 * compiles with the clients of 3.9 and of 4.
 */
@SuppressWarnings("removal")
public class Consumers {
    static final Duration POLL = Duration.ofMillis(20);
    static final String[] CONSUMER = {"group.protocol", "consumer"};

    static String bootstrap;
    static String prefix;
    static Admin admin;
    static KafkaProducer<String, String> producer;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        prefix = arguments[1];
        try (Admin opened = Admin.create(properties());
            var writer = new KafkaProducer<>(properties(), new StringSerializer(), new StringSerializer())) {
            admin = opened;
            producer = writer;
            members("uniform");
            members("range");
            offsets();
            statics();
            patterns();
            subscriptions();
            migration();
        }
    }

    /** They join, share, and leave; what is taken from one is given to another after it. */
    static void members(String assignor) throws Exception {
        String topic = create("members-" + assignor, 4);
        String group = prefix + assignor;
        String[] settings = {"group.protocol", "consumer", "group.id", group, "group.remote.assignor", assignor};
        List<String> events = new ArrayList<>();
        try (var first = consumer(settings)) {
            first.subscribe(List.of(topic), listener("first", events));
            await(() -> polled(List.of(first)) == 4 && !events.isEmpty(), true);  // 3.9 owns them before it says so
            say(assignor + " alone", events + " " + described(group));
            try (var second = consumer(settings)) {
                second.subscribe(List.of(topic), listener("second", events));
                await(() -> polled(List.of(first, second)) == 4 && second.assignment().size() == 2, true);
                for (int partition = 0; partition < 4; partition++) {
                    send(topic, partition, "to " + partition);
                }
                Set<String> heard = new TreeSet<>();
                await(() -> {
                    for (var each : List.of(first, second)) {
                        each.poll(POLL).forEach(record -> heard.add(record.value()));
                    }
                    return heard.size();
                }, 4);
                first.commitSync();
                second.commitSync();
                say(assignor + " shared", events.subList(1, events.size()) + " " + heard);
                say(assignor + " described", described(group));
            }
            await(() -> polled(List.of(first)) == 4 && events.size() == 5, true);
            say(assignor + " left", events.subList(3, 5));
        }
        say(assignor + " empty", described(group) + " " + committed(group));
    }

    static void offsets() throws Exception {
        String topic = create("offsets", 2);
        String group = prefix + "offsets";
        var place = new TopicPartition(topic, 0);
        for (int number = 0; number < 4; number++) {
            send(topic, 0, "" + number);
        }
        try (var consumer = consumer("group.protocol", "consumer", "group.id", group, "max.poll.records", "2")) {
            consumer.subscribe(List.of(topic));
            await(() -> consumer.poll(POLL).count(), 2);
            consumer.commitSync(Map.of(place, new OffsetAndMetadata(1, Optional.of(0), "a note")));
            var told = consumer.committed(Set.of(place)).get(place);
            say("offset", told.offset() + " " + told.metadata() + " " + told.leaderEpoch());
            AtomicReference<Object> outcome = new AtomicReference<>();
            consumer.commitAsync((places, failed) -> outcome.set(failed == null ? places.get(place).offset() : failed));
            await(() -> {
                consumer.poll(Duration.ZERO);
                return outcome.get();
            }, 2L);
            var metadata = consumer.groupMetadata();
            say("metadata", (metadata.generationId() > 0) + " " + metadata.memberId().isEmpty() + " " + metadata.groupInstanceId());
            say("altered by another", failure(() -> admin.alterConsumerGroupOffsets(group, Map.of(place, new OffsetAndMetadata(0))).all().get()));
            say("deleted by another", failure(() -> admin.deleteConsumerGroupOffsets(group, Set.of(place)).partitionResult(place).get()));
            say("group deleted", failure(() -> admin.deleteConsumerGroups(List.of(group)).all().get()));
        }
        admin.alterConsumerGroupOffsets(group, Map.of(place, new OffsetAndMetadata(3))).all().get();
        say("altered", committed(group));
        try (var consumer = consumer("group.protocol", "consumer", "group.id", group, "enable.auto.commit", "true")) {
            consumer.subscribe(List.of(topic));
            List<String> values = new ArrayList<>();
            await(() -> {
                consumer.poll(POLL).forEach(record -> values.add(record.value()));
                return values.size();
            }, 1);
            say("from there", values);
        }
        say("committed by itself", committed(group));
        admin.deleteConsumerGroups(List.of(group)).all().get();
        say("gone", committed(group));
    }

    static void statics() throws Exception {
        String topic = create("statics", 2);
        String[] settings = {"group.protocol", "consumer", "group.id", prefix + "statics", "group.instance.id", "one"};
        Set<Integer> epochs = new TreeSet<>();
        for (int life = 0; life < 2; life++) {
            try (var consumer = consumer(settings)) {
                consumer.subscribe(List.of(topic));
                await(() -> polled(List.of(consumer)), 2);
                epochs.add(consumer.groupMetadata().generationId());
                if (life == 1) {
                    try (var twin = consumer(settings)) {
                        twin.subscribe(List.of(topic));
                        say("a twin", failure(() -> await(() -> polled(List.of(twin)), 2)));
                    }
                }
            }
        }
        say("epochs of a static member", epochs.size());
    }

    /** The client's own patterns: it looks at all topics, and subscribes to what matches. */
    static void patterns() throws Exception {
        String one = create("pattern-1", 1);
        create("other", 1);
        try (var consumer = consumer("group.protocol", "consumer", "group.id", prefix + "patterns", "metadata.max.age.ms", "200")) {
            consumer.subscribe(Pattern.compile(Pattern.quote(prefix) + "pattern-.*"));
            await(() -> polled(List.of(consumer)), 1);
            create("pattern-2", 2);
            await(() -> polled(List.of(consumer)), 3);
            say("pattern", names(consumer.assignment()));
        }
    }

    static void subscriptions() throws Exception {
        String one = create("one", 1);
        String two = create("two", 1);
        String group = prefix + "subscriptions";
        try (var consumer = consumer("group.protocol", "consumer", "group.id", group)) {
            consumer.subscribe(List.of(one));
            await(() -> polled(List.of(consumer)), 1);
            consumer.subscribe(List.of(one, two));
            await(() -> polled(List.of(consumer)), 2);
            admin.createPartitions(Map.of(two, NewPartitions.increaseTo(3))).all().get();
            await(() -> polled(List.of(consumer)), 4);
            say("grown", names(consumer.assignment()));
            consumer.unsubscribe();
            say("unsubscribed", names(consumer.assignment()) + " " + described(group));
            consumer.subscribe(List.of(two));
            await(() -> polled(List.of(consumer)), 3);
            admin.deleteTopics(List.of(two)).all().get();
            await(() -> polled(List.of(consumer)), 0);
            say("deleted", names(consumer.assignment()));
        }
    }

    /** A classic member and one of the consumer protocol in one group; then the other way. */
    static void migration() throws Exception {
        String topic = create("migration", 4);
        String group = prefix + "migration";
        try (var newer = consumer("group.protocol", "consumer", "group.id", group)) {
            try (var older = consumer("group.id", group, "heartbeat.interval.ms", "100")) {
                older.subscribe(List.of(topic));
                await(() -> polled(List.of(older)), 4);
                say("classic", described(group));
                newer.subscribe(List.of(topic));
                await(() -> polled(List.of(older, newer)) == 4 && newer.assignment().size() == 2, true);
                say("both", described(group));
                older.commitSync(Map.of(older.assignment().iterator().next(), new OffsetAndMetadata(0)));
            }
            await(() -> polled(List.of(newer)), 4);
            say("newer only", described(group));
            try (var older = consumer("group.id", group, "heartbeat.interval.ms", "100")) {
                older.subscribe(List.of(topic));
                await(() -> polled(List.of(older, newer)) == 4 && older.assignment().size() == 2, true);
                newer.close();
                await(() -> polled(List.of(older)), 4);
                say("older only", described(group));
            }
        }
    }

    // ------------------------------------------------------------ what all of them need

    static ConsumerRebalanceListener listener(String name, List<String> events) {
        return new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> places) {
                if (!places.isEmpty()) {
                    events.add(name + " +" + places.size());
                }
            }

            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> places) {
                if (!places.isEmpty()) {
                    events.add(name + " -" + places.size());
                }
            }
        };
    }

    /** Each has polled once; how many partitions they have. */
    static int polled(List<KafkaConsumer<String, String>> consumers) {
        int sum = 0;
        for (var consumer : consumers) {
            consumer.poll(POLL);
        }
        for (var consumer : consumers) {
            sum += consumer.assignment().size();
        }
        return sum;
    }

    static List<String> names(Collection<TopicPartition> places) {
        return places.stream().map(place -> place.toString().substring(prefix.length())).sorted().toList();
    }

    static String described(String group) throws Exception {
        ConsumerGroupDescription told = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
        List<Integer> owned = told.members().stream().map(each -> each.assignment().topicPartitions().size()).sorted().toList();
        List<Integer> targets = told.members().stream().map(each -> each.targetAssignment().map(target -> target.topicPartitions().size()).orElse(-1)).sorted().toList();
        Set<String> hosts = new TreeSet<>(told.members().stream().map(each -> each.host()).toList());
        return told.type() + " " + told.state() + " " + told.partitionAssignor() + " " + owned + " " + targets + " " + hosts;
    }

    static Map<String, String> committed(String group) throws Exception {
        Map<String, String> found = new TreeMap<>();
        admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach((place, offset) -> found.put("" + place.partition(), "" + offset.offset()));
        return found;
    }

    interface Attempt {
        void make() throws Exception;
    }

    static String failure(Attempt attempt) throws Exception {
        try {
            attempt.make();
            return "nothing";
        } catch (ExecutionException failed) {
            return failed.getCause().getClass().getSimpleName();
        } catch (RuntimeException failed) {
            return failed.getClass().getSimpleName();
        }
    }

    static <T> T await(Supplier<T> look, T wanted) throws Exception {
        long deadline = System.nanoTime() + 30_000_000_000L;
        T found = look.get();
        while (!wanted.equals(found)) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException(found + " instead of " + wanted);
            }
            Thread.sleep(10);
            found = look.get();
        }
        return found;
    }

    static String create(String name, int partitions) throws Exception {
        String topic = prefix + name;
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
        return topic;
    }

    static void send(String topic, int partition, String value) throws Exception {
        producer.send(new ProducerRecord<>(topic, partition, null, value)).get();
    }

    static KafkaConsumer<String, String> consumer(String... settings) {
        Properties properties = properties();
        properties.put("auto.offset.reset", "earliest");
        properties.put("allow.auto.create.topics", "false");  // a topic that is deleted is to stay so
        properties.put("enable.auto.commit", "false");
        for (int index = 0; index < settings.length; index += 2) {
            properties.put(settings[index], settings[index + 1]);
        }
        return new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
    }

    static Properties properties() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("fetch.max.wait.ms", "50");
        properties.put("retry.backoff.ms", "20");
        return properties;
    }

    static void say(String what, Object outcome) {
        System.out.println(what + "\t" + outcome);
    }
}
