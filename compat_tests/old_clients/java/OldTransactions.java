import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/**
 * Does in transactions what applications of 2017 did, and prints what it saw: what it was about, a tab, and how it went.
 *
 * <p>Uses only what every client from 0.11 to 2.x has. Arguments: the bootstrap address and a topic of one partition.
 */
public class OldTransactions {
    static final long SECONDS = 30;

    static String bootstrap;
    static TopicPartition place;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        place = new TopicPartition(arguments[1], 0);
        KafkaProducer<String, String> zombie = producer();
        zombie.initTransactions();
        for (String end : new String[] {"committed", "aborted", "committed"}) {
            zombie.beginTransaction();
            say("sent", zombie.send(new ProducerRecord<String, String>(place.topic(), end)).get().offset());
            zombie.sendOffsetsToTransaction(Collections.singletonMap(place, new OffsetAndMetadata(end.length())), "group of " + place.topic());
            if (end.equals("committed")) {
                zombie.commitTransaction();
            } else {
                zombie.abortTransaction();
            }
        }
        zombie.beginTransaction();
        zombie.send(new ProducerRecord<String, String>(place.topic(), "of the zombie")).get();
        KafkaProducer<String, String> successor = producer();
        successor.initTransactions();
        try {
            zombie.commitTransaction();
            say("zombie", "committed");
        } catch (KafkaException error) {
            say("zombie", error.getClass().getSimpleName());
        }
        successor.beginTransaction();
        successor.send(new ProducerRecord<String, String>(place.topic(), "of the successor")).get();
        successor.commitTransaction();
        say("committed", read("read_committed", 3));
        say("everything", read("read_uncommitted", 5));
        zombie.close();
        successor.close();
    }

    static List<String> read(String isolation, int count) {
        Properties settings = settings();
        settings.put("isolation.level", isolation);
        settings.put("group.id", "group of " + place.topic());
        settings.put("enable.auto.commit", "false");
        List<String> found = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.assign(Arrays.asList(place));
            found.add("group at " + consumer.committed(place).offset());
            consumer.seek(place, 0);
            long deadline = System.nanoTime() + SECONDS * 1_000_000_000L;
            while (found.size() <= count && System.nanoTime() < deadline) {
                for (ConsumerRecord<String, String> each : consumer.poll(100)) {
                    found.add(each.offset() + ":" + each.value());
                }
            }
        }
        return found;
    }

    static KafkaProducer<String, String> producer() {
        Properties settings = settings();
        settings.put("transactional.id", "id of " + place.topic());
        return new KafkaProducer<>(settings);
    }

    static Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        for (String side : new String[] {"key", "value"}) {
            settings.put(side + ".serializer", "org.apache.kafka.common.serialization.StringSerializer");
            settings.put(side + ".deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        }
        return settings;
    }

    static void say(String what, Object outcome) {
        System.out.println(what + "\t" + outcome);
    }
}
