import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A classic group goes from eager to cooperative rebalancing by two rolling restarts (KIP-429), and is read all the while.
 *
 * <p>Arguments: the bootstrap address and a prefix for names. After each restart of a member it prints how many partitions
 * each has, by which assignor, and how many records were read so far.
 */
public class Rolling {
    static final String EAGER = RangeAssignor.class.getName();
    static final String COOPERATIVE = CooperativeStickyAssignor.class.getName();
    static final int PARTITIONS = 4;

    static String bootstrap;
    static String name;
    static int sent;
    static List<String> heard = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        name = arguments[1] + "rolling";
        var members = new ArrayList<KafkaConsumer<String, String>>();
        try (var admin = Admin.create(properties());
            var producer = new KafkaProducer<>(properties(), new StringSerializer(), new StringSerializer())) {
            admin.createTopics(List.of(new NewTopic(name, PARTITIONS, (short) 1))).all().get();
            members.add(member(EAGER));
            members.add(member(EAGER));
            read("eager", members, admin, producer);
            for (String assignors : List.of(COOPERATIVE + "," + EAGER, COOPERATIVE)) {
                for (int each = 0; each < 2; each++) {
                    members.remove(0).close(Duration.ofSeconds(5));
                    members.add(member(assignors));
                    read(assignors.equals(COOPERATIVE) ? "cooperative" : "either", members, admin, producer);
                }
            }
        } finally {
            for (var member : members) {
                member.close(Duration.ofSeconds(5));
            }
        }
    }

    /** Once they share, some records come; each is read by one of them, once. */
    static void read(
        String what, List<KafkaConsumer<String, String>> members, Admin admin, KafkaProducer<String, String> producer)
        throws Exception {
        long deadline = System.nanoTime() + 60_000_000_000L;
        while (!members.stream().allMatch(each -> each.assignment().size() == PARTITIONS / members.size())) {
            poll(members, deadline);
        }
        for (int partition = 0; partition < PARTITIONS; partition++) {
            producer.send(new ProducerRecord<>(name, partition, null, "" + sent++)).get();
        }
        while (new TreeSet<>(heard).size() < sent) {
            poll(members, deadline);
        }
        for (var member : members) {
            member.commitSync();
        }
        var described = admin.describeConsumerGroups(List.of(name)).all().get().get(name);
        System.out.println(what + "\t" + described.members().stream().map(each ->
            each.assignment().topicPartitions().size()).toList() + " " + described.partitionAssignor() + " " + heard.size());
    }

    static void poll(List<KafkaConsumer<String, String>> members, long deadline) {
        if (System.nanoTime() > deadline) {
            throw new IllegalStateException("not within a minute: " + members.stream().map(KafkaConsumer::assignment).toList());
        }
        for (var member : members) {
            member.poll(Duration.ofMillis(20)).forEach(record -> heard.add(record.value()));
        }
    }

    static KafkaConsumer<String, String> member(String assignors) {
        var properties = properties();
        properties.putAll(java.util.Map.of(
            "group.id", name,
            "auto.offset.reset", "earliest",
            "enable.auto.commit", "false",
            "heartbeat.interval.ms", "100",
            "session.timeout.ms", "20000",
            "partition.assignment.strategy", assignors));
        var made = new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
        made.subscribe(List.of(name));
        return made;
    }

    static Properties properties() {
        var properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        return properties;
    }
}
