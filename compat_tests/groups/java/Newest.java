import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.function.Function;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * What of groups only the current Java clients can do (share consumers, patterns that the broker resolves, the newer calls
 * of the admin): what it was about, a tab, and how it went.
 *
 * <p>Prints nothing that differs from one run to the next. Arguments: the bootstrap address and a prefix for names.
 */
public class Newest {
    static final Duration POLL = Duration.ofMillis(50);

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
            patterns();
            epochs();
            implicit();
            explicit();
            renewed();
            together();
            offsets();
            described();
            configs();
            streams();
        }
    }

    // ------------------------------------------------------------ the consumer protocol

    /** The broker's patterns: RE2, matched there. */
    static void patterns() throws Exception {
        create("pattern-1", 1);
        create("pattern-x", 1);
        try (var consumer = consumer(prefix + "patterns")) {
            consumer.subscribe(new SubscriptionPattern(prefix + "pattern-[0-9]"));
            await(() -> polled(consumer), 1);
            say("pattern", names(consumer.assignment()));
            consumer.subscribe(new SubscriptionPattern(prefix + "pattern-.*"));
            await(() -> polled(consumer), 2);
            say("another", names(consumer.assignment()));
            consumer.subscribe(new SubscriptionPattern("(" + prefix));
            say("no pattern", failure(() -> await(() -> polled(consumer), 9)));
        }
    }

    static void epochs() throws Exception {
        String topic = create("epochs", 2);
        String group = prefix + "epochs";
        try (var first = consumer(group); var second = consumer(group)) {
            first.subscribe(List.of(topic));
            await(() -> polled(first), 2);
            second.subscribe(List.of(topic));
            await(() -> polled(first) + polled(second) == 2 && second.assignment().size() == 1, true);
            var told = awaitThat(() -> admin.describeConsumerGroups(List.of(group)).all().get().get(group), each -> each.groupState() == GroupState.STABLE);
            Set<Boolean> settled = new TreeSet<>();
            Set<Boolean> upgraded = new TreeSet<>();
            told.members().forEach(each -> settled.add(each.memberEpoch().equals(told.groupEpoch()) && told.groupEpoch().equals(told.targetAssignmentEpoch())));
            told.members().forEach(each -> upgraded.add(each.upgraded().get()));
            say("epochs", told.groupState() + " " + told.groupEpoch().get() + " " + settled + " " + upgraded);
            say("listed", listed(new ListGroupsOptions().withTypes(Set.of(GroupType.CONSUMER)), group)
                + listed(new ListGroupsOptions().withTypes(Set.of(GroupType.CLASSIC, GroupType.SHARE)), group)
                + listed(new ListGroupsOptions().inGroupStates(Set.of(GroupState.STABLE)), group)
                + listed(ListGroupsOptions.forConsumerGroups(), group) + listed(ListGroupsOptions.forShareGroups(), group));
            say("as a share group", failure(() -> admin.describeShareGroups(List.of(group)).all().get()));
        }
    }

    // ------------------------------------------------------------ share groups

    static void implicit() throws Exception {
        String topic = create("implicit", 2);
        String group = earliest("implicit");
        send(topic, 10);
        try (var consumer = sharer(group)) {
            consumer.subscribe(List.of(topic));
            List<String> values = new ArrayList<>();
            Map<Integer, Set<Long>> acknowledged = new TreeMap<>();
            consumer.setAcknowledgementCommitCallback((offsets, failed) ->
                offsets.forEach((place, those) -> acknowledged.computeIfAbsent(place.partition(), unused -> new TreeSet<>()).addAll(those)));
            await(() -> {
                consumer.poll(POLL).forEach(record -> values.add(record.value() + " " + record.deliveryCount().get()));
                return values.size();
            }, 10);
            consumer.commitSync();
            await(() -> {
                consumer.poll(POLL);
                return acknowledged.values().stream().mapToInt(Set::size).sum();
            }, 10);
            say("implicit", values.stream().sorted().toList() + " " + acknowledged + " " + consumer.acquisitionLockTimeoutMs());
        }
        say("done with", startOffsets(group));
    }

    static void explicit() throws Exception {
        String topic = create("explicit", 1);
        String group = earliest("explicit", "share.delivery.count.limit", "3");
        send(topic, 6);
        Map<String, AcknowledgeType> wanted = Map.of("0", AcknowledgeType.ACCEPT, "1", AcknowledgeType.RELEASE, "2", AcknowledgeType.REJECT,
            "3", AcknowledgeType.ACCEPT, "4", AcknowledgeType.RELEASE, "5", AcknowledgeType.ACCEPT);
        try (var consumer = sharer(group, "share.acknowledgement.mode", "explicit")) {
            consumer.subscribe(List.of(topic));
            Map<String, Integer> tries = new TreeMap<>();
            Set<Object> failures = new HashSet<>();
            await(() -> {
                for (var record : consumer.poll(POLL)) {
                    tries.merge(record.value(), 1, Integer::sum);
                    consumer.acknowledge(record, wanted.get(record.value()));
                }
                consumer.commitSync().values().forEach(failures::add);
                return tries.values().stream().mapToInt(each -> each).sum();
            }, 10);
            say("explicit", tries + " " + failures);
            send(topic, 1);
            List<String> more = new ArrayList<>();
            await(() -> {
                for (var record : consumer.poll(POLL)) {
                    more.add(record.offset() + " " + record.deliveryCount().get());
                    consumer.acknowledge(record);
                }
                return more.size();
            }, 1);
            say("the next", more);
            say("not acquired", failure(() -> consumer.acknowledge(topic, 0, 99, AcknowledgeType.ACCEPT)));
        }
        say("explicitly done with", startOffsets(group));
    }

    /** A lock that is renewed outlasts its time; nobody else is given the record meanwhile. */
    static void renewed() throws Exception {
        String topic = create("renewed", 1);
        String group = earliest("renewed", "share.record.lock.duration.ms", "1500");
        send(topic, 1);
        try (var slow = sharer(group, "share.acknowledgement.mode", "explicit"); var other = sharer(group, "share.acknowledgement.mode", "explicit")) {
            slow.subscribe(List.of(topic));
            List<ConsumerRecord<String, String>> held = new ArrayList<>();
            await(() -> {
                slow.poll(POLL).forEach(held::add);
                return held.size();
            }, 1);
            say("lock", slow.acquisitionLockTimeoutMs());
            other.subscribe(List.of(topic));
            int seen = 0;
            for (int turn = 0; turn < 6; turn++) {
                slow.acknowledge(held.get(0), AcknowledgeType.RENEW);
                say("renewal " + turn, slow.commitSync().values());
                seen += other.poll(Duration.ofMillis(400)).count();
                held.clear();
                await(() -> {
                    slow.poll(POLL).forEach(held::add);
                    return held.size();
                }, 1);
            }
            slow.acknowledge(held.get(0), AcknowledgeType.ACCEPT);
            say("renewed", seen + " " + slow.commitSync().values());
        }
        say("renewed and done with", startOffsets(group));
    }

    static void together() throws Exception {
        String topic = create("together", 1);
        String group = earliest("together");
        try (var first = sharer(group, "max.poll.records", "5"); var second = sharer(group, "max.poll.records", "5")) {
            Map<String, Set<Integer>> takers = new HashMap<>();
            first.subscribe(List.of(topic));
            second.subscribe(List.of(topic));
            int sent = 0;
            Set<Integer> busy = new HashSet<>();
            while (busy.size() < 2) {
                send(topic, 10);
                sent += 10;
                int wanted = sent;
                await(() -> {
                    take(first, 1, takers, busy);
                    take(second, 2, takers, busy);
                    return takers.size();
                }, wanted);
            }
            say("together", takers.values().stream().allMatch(each -> each.size() == 1));
            say("members", admin.describeShareGroups(List.of(group)).all().get().get(group).members().stream().map(each -> each.assignment().topicPartitions().size()).toList());
        }
    }

    static void take(KafkaShareConsumer<String, String> consumer, int who, Map<String, Set<Integer>> takers, Set<Integer> busy) {
        for (var record : consumer.poll(POLL)) {
            takers.computeIfAbsent("" + record.offset(), unused -> new HashSet<>()).add(who);
            busy.add(who);
        }
    }

    static void offsets() throws Exception {
        String topic = create("offsets", 2);
        String group = earliest("offsets");
        var place = new TopicPartition(topic, 0);
        send(topic, 10);
        try (var consumer = sharer(group)) {
            consumer.subscribe(List.of(topic));
            say("read", values(consumer, 10).size());
            consumer.commitSync();
            say("altered in use", failure(() -> admin.alterShareGroupOffsets(group, Map.of(place, 1L)).all().get()));
            say("deleted in use", failure(() -> admin.deleteShareGroupOffsets(group, Set.of(topic)).all().get()));
            say("group deleted in use", failure(() -> admin.deleteShareGroups(List.of(group)).all().get()));
        }
        say("offsets", startOffsets(group));
        say("altered", failure(() -> admin.alterShareGroupOffsets(group, Map.of(place, 3L)).all().get()) + " " + startOffsets(group));
        try (var consumer = sharer(group)) {
            consumer.subscribe(List.of(topic));
            say("from there", values(consumer, 2));
        }
        say("altered what is not there", failure(() -> admin.alterShareGroupOffsets(group, Map.of(new TopicPartition(topic, 7), 3L)).all().get()));
        say("deleted", failure(() -> admin.deleteShareGroupOffsets(group, Set.of(topic)).all().get()) + " " + startOffsets(group));
        say("deleted again", failure(() -> admin.deleteShareGroupOffsets(group, Set.of(topic)).all().get()));
        say("group deleted", failure(() -> admin.deleteShareGroups(List.of(group)).all().get()));
        say("and gone", failure(() -> admin.describeShareGroups(List.of(group)).all().get()) + " " + listed(new ListGroupsOptions(), group));
        say("offsets of none", failure(() -> admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec())).all().get()));
        say("offsets of a new one", failure(() -> admin.alterShareGroupOffsets(prefix + "new", Map.of(place, 2L)).all().get()));
    }

    static void described() throws Exception {
        String topic = create("described", 3);
        String group = earliest("described");
        try (var consumer = sharer(group, "client.id", "a client")) {
            consumer.subscribe(List.of(topic));
            consumer.poll(POLL);
            var told = awaitThat(() -> {
                consumer.poll(POLL);
                return listed(ListGroupsOptions.forShareGroups(), group).equals("[]") ? null : admin.describeShareGroups(List.of(group)).all().get().get(group);
            }, each -> each != null && each.groupState() == GroupState.STABLE && each.members().iterator().next().assignment().topicPartitions().size() == 3);
            var member = told.members().iterator().next();
            say("described", told.groupState() + " " + told.groupEpoch() + " " + (told.groupEpoch() == told.targetAssignmentEpoch()) + " " + (member.memberEpoch() == told.groupEpoch())
                + " " + member.clientId() + " " + member.host() + " " + member.rackId() + " " + names(member.assignment().topicPartitions()));
            say("shared and listed", listed(ListGroupsOptions.forShareGroups(), group) + listed(new ListGroupsOptions().withTypes(Set.of(GroupType.SHARE)), group)
                + listed(new ListGroupsOptions().withTypes(Set.of(GroupType.CONSUMER)), group));
            say("as a consumer group", failure(() -> admin.describeConsumerGroups(List.of(group)).all().get()));
            say("joined by a consumer", failure(() -> {
                try (var intruder = consumer(group)) {
                    intruder.subscribe(List.of(topic));
                    await(() -> polled(intruder), 3);
                }
            }));
        }
        say("emptied", awaitThat(() -> admin.describeShareGroups(List.of(group)).all().get().get(group).groupState(), each -> each == GroupState.EMPTY));
    }

    // ------------------------------------------------------------ configs, streams

    static void configs() throws Exception {
        String group = prefix + "configs";
        var resource = new ConfigResource(ConfigResource.Type.GROUP, group);
        say("default", config(resource, "consumer.session.timeout.ms") + " " + config(resource, "share.auto.offset.reset"));
        set(resource, "consumer.session.timeout.ms", "19000");
        set(resource, "share.auto.offset.reset", "earliest");
        say("set", config(resource, "consumer.session.timeout.ms") + " " + config(resource, "share.auto.offset.reset"));
        say("with configs", admin.listConfigResources(Set.of(ConfigResource.Type.GROUP), new ListConfigResourcesOptions()).all().get().contains(resource));
        say("out of bounds", failure(() -> set(resource, "consumer.session.timeout.ms", "1")));
        say("below the heartbeat", failure(() -> set(resource, "consumer.heartbeat.interval.ms", "60000")));
        say("no such config", failure(() -> set(resource, "retention.ms", "1")));
        say("no such reset", failure(() -> set(resource, "share.auto.offset.reset", "sometime")));
        admin.incrementalAlterConfigs(Map.of(resource, List.of(
            new AlterConfigOp(new ConfigEntry("consumer.session.timeout.ms", ""), AlterConfigOp.OpType.DELETE),
            new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", ""), AlterConfigOp.OpType.DELETE)))).all().get();
        say("unset", config(resource, "consumer.session.timeout.ms") + " " + config(resource, "share.auto.offset.reset"));
    }

    static void streams() throws Exception {
        say("no streams group", failure(() -> admin.describeStreamsGroups(List.of(prefix + "streams")).all().get()));
        say("not a streams group", failure(() -> admin.describeStreamsGroups(List.of(prefix + "described")).all().get()));
        say("streams groups", admin.listGroups(ListGroupsOptions.forStreamsGroups()).all().get().stream().filter(each -> each.groupId().startsWith(prefix)).toList());
    }

    static void set(ConfigResource resource, String name, String value) throws Exception {
        admin.incrementalAlterConfigs(Map.of(resource, List.of(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)))).all().get();
    }

    static String config(ConfigResource resource, String name) throws Exception {
        ConfigEntry entry = admin.describeConfigs(List.of(resource)).all().get().get(resource).get(name);
        return entry.value() + " " + entry.source();
    }

    // ------------------------------------------------------------ what all of them need

    static String earliest(String name, String... configs) throws Exception {
        var resource = new ConfigResource(ConfigResource.Type.GROUP, prefix + name);
        set(resource, "share.auto.offset.reset", "earliest");
        for (int index = 0; index < configs.length; index += 2) {
            set(resource, configs[index], configs[index + 1]);
        }
        return prefix + name;
    }

    static List<String> values(KafkaShareConsumer<String, String> consumer, int count) throws Exception {
        List<String> values = new ArrayList<>();
        await(() -> {
            consumer.poll(POLL).forEach(record -> values.add(record.value()));
            return values.size();
        }, count);
        return values.stream().sorted().toList();
    }

    static Map<String, String> startOffsets(String group) throws Exception {
        Map<String, String> found = new TreeMap<>();
        admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec())).all().get().get(group)
            .forEach((place, told) -> found.put(names(Set.of(place)).get(0), told == null ? null : told.startOffset() + " lag " + told.lag().orElse(-1L)));
        return found;
    }

    static String listed(ListGroupsOptions options, String group) throws Exception {
        return admin.listGroups(options).all().get().stream().filter(each -> each.groupId().equals(group))
            .map(each -> each.type().get() + " " + each.protocol() + " " + each.groupState().get()).toList().toString();
    }

    static int polled(KafkaConsumer<String, String> consumer) {
        consumer.poll(POLL);
        return consumer.assignment().size();
    }

    static List<String> names(Collection<TopicPartition> places) {
        return places.stream().map(place -> place.toString().substring(prefix.length())).sorted().toList();
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

    interface Look<T> {
        T at() throws Exception;
    }

    static <T> T await(Look<T> look, T wanted) throws Exception {
        return awaitThat(look, wanted::equals);
    }

    static <T> T awaitThat(Look<T> look, Function<T, Boolean> reached) throws Exception {
        long deadline = System.nanoTime() + 30_000_000_000L;
        T found = look.at();
        while (!reached.apply(found)) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("it stays " + found);
            }
            Thread.sleep(10);
            found = look.at();
        }
        return found;
    }

    static String create(String name, int partitions) throws Exception {
        String topic = prefix + name;
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
        return topic;
    }

    /** So many records, in turns over the topic's partitions. */
    static void send(String topic, int count) throws Exception {
        int partitions = producer.partitionsFor(topic).size();
        for (int number = 0; number < count; number++) {
            producer.send(new ProducerRecord<>(topic, number % partitions, null, "" + number)).get();
        }
    }

    static KafkaConsumer<String, String> consumer(String group) {
        Properties properties = properties();
        properties.put("group.id", group);
        properties.put("group.protocol", "consumer");
        properties.put("auto.offset.reset", "earliest");
        return new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
    }

    static KafkaShareConsumer<String, String> sharer(String group, String... settings) {
        Properties properties = properties();
        properties.put("group.id", group);
        for (int index = 0; index < settings.length; index += 2) {
            properties.put(settings[index], settings[index + 1]);
        }
        return new KafkaShareConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
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
