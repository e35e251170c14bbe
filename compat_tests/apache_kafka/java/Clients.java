import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.function.Supplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Does with the Java clients what applications do, and prints what it saw as JSON, one object a line.
 *
 * <p>Prints nothing that differs from one run to the next (ports, ids, the time of day), so that two brokers' lines can be
 * compared. Arguments: the bootstrap address and a prefix for names.
 */
public class Clients {
    static final long T0 = 1_700_000_000_000L;
    static final Duration POLL = Duration.ofMillis(50);

    static String bootstrap;
    static String prefix;
    static Admin admin;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        prefix = arguments[1];
        try (Admin opened = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin = opened;
            topics();
            for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
                codec(codec);
            }
            acknowledgements();
            places();
            group("range", "org.apache.kafka.clients.consumer.RangeAssignor");
            group("cooperative", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
            staticMember();
            groupsByAdmin();
            refusals();
            removals();
        }
    }

    // ------------------------------------------------------------ topics and configs

    static void topics() throws Exception {
        String topic = prefix + "topics";
        create(topic, 2, Map.of("retention.ms", "1234567"));
        var described = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        say("topic", "partitions", described.partitions().size(), "replicas", described.partitions().get(0).replicas().size(),
            "internal", described.isInternal(), "has id", !described.topicId().toString().equals("AAAAAAAAAAAAAAAAAAAAAA"));
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(4))).all().get();
        say("grown", "partitions", await(() -> partitions(topic), 4));

        var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        var change = new AlterConfigOp(new ConfigEntry("max.message.bytes", "4000"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
        say("configs", "max.message.bytes", await(() -> config(resource, "max.message.bytes"), "4000 DYNAMIC_TOPIC_CONFIG"),
            "retention.ms", config(resource, "retention.ms"), "cleanup.policy", config(resource, "cleanup.policy"));
        var nodes = admin.describeCluster().nodes().get();
        say("cluster", "nodes", nodes.size(), "id", nodes.iterator().next().id(),
            "controller", admin.describeCluster().controller().get().id());
        say("listed", "there", admin.listTopics().names().get().contains(topic));
    }

    static void create(String topic, int partitions, Map<String, String> configs) throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1).configs(configs))).all().get();
        await(() -> partitions(topic), partitions);
    }

    static int partitions(String topic) {
        try {
            return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
        } catch (InterruptedException | ExecutionException notYet) {
            return -1;
        }
    }

    static String config(ConfigResource resource, String name) {
        try {
            ConfigEntry entry = admin.describeConfigs(List.of(resource)).all().get().get(resource).get(name);
            return entry.value() + " " + entry.source();
        } catch (InterruptedException | ExecutionException failed) {
            throw new IllegalStateException(failed);
        }
    }

    // ------------------------------------------------------------ producing and consuming

    static void codec(String codec) throws Exception {
        String topic = prefix + codec;
        create(topic, 1, Map.of());
        try (var producer = producer("compression.type", codec, "linger.ms", "20")) {
            List<java.util.concurrent.Future<RecordMetadata>> sent = new ArrayList<>();
            for (int index = 0; index < 50; index++) {
                var record = new ProducerRecord<>(topic, 0, T0 + index, bytes("key " + index), bytes("value " + index));
                record.headers().add("number", bytes(String.valueOf(index))).add("nothing", null);
                sent.add(producer.send(record));
            }
            sent.add(producer.send(new ProducerRecord<>(topic, 0, T0 + 50, null, bytes("no key"))));
            sent.add(producer.send(new ProducerRecord<>(topic, 0, T0 + 51, bytes("no value"), (byte[]) null)));
            sent.add(producer.send(new ProducerRecord<>(topic, 0, T0 + 52, new byte[0], new byte[100_000])));
            List<Long> offsets = new ArrayList<>();
            for (var each : sent) {
                offsets.add(each.get().offset());
            }
            say("sent " + codec, "first", offsets.get(0), "last", offsets.get(offsets.size() - 1), "timestamp", sent.get(7).get().timestamp());
        }
        try (var consumer = consumer("auto.offset.reset", "earliest")) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            var records = read(consumer, 53);
            say("read " + codec, "count", records.size(), "records", List.of(told(records.get(0)), told(records.get(49)), told(records.get(50)), told(records.get(51))),
                "large", records.get(52).value().length);
        }
    }

    static void acknowledgements() throws Exception {
        String topic = prefix + "acks";
        create(topic, 1, Map.of("message.timestamp.type", "LogAppendTime"));
        for (String acks : List.of("0", "1", "all")) {
            try (var producer = producer("acks", acks, "enable.idempotence", "false")) {
                var told = producer.send(new ProducerRecord<>(topic, bytes("acks " + acks))).get();
                say("acks " + acks, "offset", told.hasOffset() ? told.offset() : -1, "append time", told.timestamp() > T0);
            }
        }
        try (var consumer = consumer()) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            consumer.seekToBeginning(consumer.assignment());
            var records = read(consumer, 3);
            say("acknowledged", "values", records.stream().map(each -> text(each.value())).toList(), "type", records.get(0).timestampType());
        }
    }

    static void places() throws Exception {
        String topic = prefix + "places";
        create(topic, 1, Map.of());
        var partition = new TopicPartition(topic, 0);
        try (var producer = producer()) {
            for (int index = 0; index < 10; index++) {
                producer.send(new ProducerRecord<>(topic, 0, T0 + 100L * index, null, bytes("at " + index))).get();
            }
        }
        try (var consumer = consumer("max.poll.records", "3", "auto.offset.reset", "latest")) {
            consumer.assign(List.of(partition));
            say("ends", "first", consumer.beginningOffsets(List.of(partition)).get(partition), "last", consumer.endOffsets(List.of(partition)).get(partition));
            Map<String, Object> found = new LinkedHashMap<>();
            for (long timestamp : new long[] {0, T0, T0 + 250, T0 + 900, T0 + 901}) {
                OffsetAndTimestamp at = consumer.offsetsForTimes(Map.of(partition, timestamp)).get(partition);
                found.put(String.valueOf(timestamp), at == null ? null : at.offset() + " at " + at.timestamp() + " in " + at.leaderEpoch().orElse(-1));
            }
            say("times", "found", found);
            consumer.seek(partition, 4);
            say("sought", "value", text(read(consumer, 1).get(0).value()), "position", consumer.position(partition));
            consumer.pause(List.of(partition));
            boolean quiet = consumer.poll(POLL).isEmpty();
            consumer.resume(List.of(partition));
            say("paused", "quiet", quiet, "next", text(read(consumer, 1).get(0).value()));
            consumer.seek(partition, 99);
            consumer.poll(POLL);
            say("out of range", "position", await(() -> {
                consumer.poll(POLL);
                return consumer.position(partition);
            }, 10L));
        }
        say("listed offsets", "earliest", offset(partition, OffsetSpec.earliest()), "latest", offset(partition, OffsetSpec.latest()),
            "greatest timestamp", offset(partition, OffsetSpec.maxTimestamp()), "by time", offset(partition, OffsetSpec.forTimestamp(T0 + 101)));
    }

    static long offset(TopicPartition partition, OffsetSpec wanted) throws Exception {
        return admin.listOffsets(Map.of(partition, wanted)).partitionResult(partition).get().offset();
    }

    // ------------------------------------------------------------ groups

    static void group(String name, String assignor) throws Exception {
        String topic = prefix + "group-" + name;
        String group = prefix + name;
        create(topic, 4, Map.of());
        try (var producer = producer()) {
            for (int index = 0; index < 20; index++) {
                producer.send(new ProducerRecord<>(topic, index % 4, null, bytes("value " + index))).get();
            }
        }
        String[] settings = {"group.id", group, "partition.assignment.strategy", assignor, "auto.offset.reset", "earliest",
            "enable.auto.commit", "false", "heartbeat.interval.ms", "200", "session.timeout.ms", "10000"};
        try (var first = consumer(settings)) {
            first.subscribe(List.of(topic));
            int count = read(first, 20).size();
            first.commitSync(Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(5, Optional.of(0), "a note")));
            first.commitSync();
            say("alone " + name, "records", count, "partitions", first.assignment().size(), "generation", first.groupMetadata().generationId() > 0);
            try (var second = consumer(settings)) {
                second.subscribe(List.of(topic));
                boolean shared = await(() -> {
                    first.poll(POLL);
                    second.poll(POLL);
                    return first.assignment().size() == 2 && second.assignment().size() == 2
                        && Collections.disjoint(first.assignment(), second.assignment());
                }, true);
                say("shared " + name, "evenly", shared);
                var described = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
                say("described " + name, "state", described.state(), "members", described.members().size(), "assignor", described.partitionAssignor(),
                    "assigned", described.members().stream().mapToInt(each -> each.assignment().topicPartitions().size()).sum());
            }
            say("left " + name, "partitions", await(() -> {
                first.poll(POLL);
                return first.assignment().size();
            }, 4));
        }
        try (var again = consumer(settings)) {
            again.subscribe(List.of(topic));
            await(() -> {
                again.poll(POLL);
                return again.assignment().size();
            }, 4);
            Map<String, Object> committed = new TreeMap<>();
            again.committed(again.assignment()).forEach((partition, at) -> committed.put(String.valueOf(partition.partition()), at.offset() + " " + at.metadata()));
            say("committed " + name, "offsets", committed, "nothing more", again.poll(POLL).isEmpty());
        }
    }

    static void staticMember() throws Exception {
        String topic = prefix + "static";
        create(topic, 2, Map.of());
        String[] settings = {"group.id", prefix + "static", "group.instance.id", "one", "auto.offset.reset", "earliest"};
        int generation = -1;
        for (int life = 0; life < 2; life++) {
            try (var consumer = consumer(settings)) {
                consumer.subscribe(List.of(topic));
                await(() -> {
                    consumer.poll(POLL);
                    return consumer.assignment().size();
                }, 2);
                int now = consumer.groupMetadata().generationId();
                say("static life " + life, "same generation", generation == -1 || generation == now, "instance", consumer.groupMetadata().groupInstanceId().get());
                generation = now;
            }
        }
    }

    static void groupsByAdmin() throws Exception {
        String group = prefix + "range";
        var partition = new TopicPartition(prefix + "group-range", 1);
        Set<String> listed = new TreeSet<>();
        for (var each : admin.listConsumerGroups().all().get()) {
            if (each.groupId().startsWith(prefix)) {
                listed.add(each.groupId().substring(prefix.length()));
            }
        }
        say("groups", "listed", listed);
        admin.alterConsumerGroupOffsets(group, Map.of(partition, new OffsetAndMetadata(2))).all().get();
        var offsets = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        say("altered", "offset", offsets.get(partition).offset(), "partitions", offsets.size());
        admin.deleteConsumerGroupOffsets(group, Set.of(partition)).all().get();
        say("deleted offset", "left", admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().size());
        admin.deleteConsumerGroups(List.of(group)).all().get();
        say("deleted group", "left", admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().size());
    }

    // ------------------------------------------------------------ what is refused, and what goes

    static void refusals() throws Exception {
        String topic = prefix + "refusals";
        create(topic, 1, Map.of("max.message.bytes", "2000", "cleanup.policy", "compact"));
        try (var producer = producer()) {
            say("too large", "error", failure(() -> producer.send(new ProducerRecord<>(topic, bytes("k"), new byte[5000])).get()));
            say("no key", "error", failure(() -> producer.send(new ProducerRecord<>(topic, null, bytes("v"))).get()));
            say("still fine", "offset", producer.send(new ProducerRecord<>(topic, bytes("k"), bytes("v"))).get().offset());
        }
        say("topic exists", "error", failure(() -> admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get()));
        say("too many replicas", "error", failure(() -> admin.createTopics(List.of(new NewTopic(prefix + "r", 1, (short) 3))).all().get()));
        say("bad config", "error", failure(() -> admin.createTopics(List.of(new NewTopic(prefix + "c", 1, (short) 1).configs(Map.of("retention.ms", "x")))).all().get()));
        say("bad name", "error", failure(() -> admin.createTopics(List.of(new NewTopic(prefix + "a b", 1, (short) 1))).all().get()));
        say("unknown topic", "error", failure(() -> admin.describeTopics(List.of(prefix + "nowhere")).allTopicNames().get()));
        say("fewer partitions", "error", failure(() -> admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(1))).all().get()));
        say("unknown group", "error", failure(() -> admin.deleteConsumerGroups(List.of(prefix + "nowhere")).all().get()));
    }

    static void removals() throws Exception {
        String topic = prefix + "none";
        var partition = new TopicPartition(topic, 0);
        var deleted = admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(10))).lowWatermarks().get(partition).get();
        say("deleted records", "low watermark", deleted.lowWatermark(), "earliest", offset(partition, OffsetSpec.earliest()));
        var directories = admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1);
        say("log directories", "count", directories.size(), "has the partition", directories.values().iterator().next().replicaInfos().containsKey(partition));
        admin.deleteTopics(List.of(topic)).all().get();
        say("deleted topic", "partitions", await(() -> partitions(topic), -1));
    }

    // ------------------------------------------------------------ helpers

    interface Attempt {
        Object make() throws Exception;
    }

    static String failure(Attempt attempt) throws Exception {
        try {
            return "none: " + attempt.make();
        } catch (ExecutionException failed) {
            return failed.getCause().getClass().getSimpleName();
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

    static List<ConsumerRecord<byte[], byte[]>> read(KafkaConsumer<byte[], byte[]> consumer, int count) throws Exception {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        await(() -> {
            consumer.poll(POLL).forEach(records::add);
            return records.size() >= count;
        }, true);
        return records;
    }

    static Map<String, Object> told(ConsumerRecord<byte[], byte[]> record) {
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("offset", record.offset());
        told.put("timestamp", record.timestamp());
        told.put("key", text(record.key()));
        told.put("value", text(record.value()));
        Map<String, Object> headers = new LinkedHashMap<>();
        for (Header header : record.headers()) {
            headers.put(header.key(), text(header.value()));
        }
        told.put("headers", headers);
        return told;
    }

    static KafkaProducer<byte[], byte[]> producer(String... settings) {
        return new KafkaProducer<>(properties(settings), new ByteArraySerializer(), new ByteArraySerializer());
    }

    static KafkaConsumer<byte[], byte[]> consumer(String... settings) {
        return new KafkaConsumer<>(properties(settings), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static Properties properties(String... settings) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("fetch.max.wait.ms", "100");
        for (int index = 0; index < settings.length; index += 2) {
            properties.put(settings[index], settings[index + 1]);
        }
        return properties;
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : bytes.length > 100 ? HexFormat.of().formatHex(bytes, 0, 100) : new String(bytes, StandardCharsets.UTF_8);
    }

    static void say(String what, Object... pairs) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("what", what);
        for (int index = 0; index < pairs.length; index += 2) {
            line.put((String) pairs[index], pairs[index + 1]);
        }
        System.out.println(json(line));
    }

    static String json(Object value) {
        if (value == null || value instanceof Number || value instanceof Boolean) {
            return String.valueOf(value);
        }
        if (value instanceof Map<?, ?> map) {
            List<String> parts = new ArrayList<>();
            map.forEach((key, each) -> parts.add(json(String.valueOf(key)) + ": " + json(each)));
            return "{" + String.join(", ", parts) + "}";
        }
        if (value instanceof Collection<?> items) {
            return "[" + String.join(", ", items.stream().map(Clients::json).toList()) + "]";
        }
        return "\"" + String.valueOf(value).replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }
}
