import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * Does what applications of 2015 to 2017 did, and prints what it saw, one thing a line with tabs between.
 *
 * <p>Uses only what every client from 0.9.0 to 0.10.2 has. Arguments: the bootstrap address, then one of "write TOPIC", "read
 * TOPIC COUNT LIMIT" and "group TOPIC GROUP COUNT".
 */
public class Old {
    static final long SECONDS = 30;

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        for (String side : new String[] {"key", "value"}) {
            settings.put(side + ".serializer", "org.apache.kafka.common.serialization.StringSerializer");
            settings.put(side + ".deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        }
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        String topic = arguments[2];
        switch (arguments[1]) {
            case "write":
                write(settings, topic);
                break;
            case "read":
                settings.put("max.partition.fetch.bytes", arguments[4]);
                read(settings, topic, Integer.parseInt(arguments[3]));
                break;
            case "group":
                settings.put("group.id", arguments[3]);
                settings.put("session.timeout.ms", "6000");
                group(settings, topic, Integer.parseInt(arguments[4]));
                break;
            default:
                throw new IllegalArgumentException(arguments[1]);
        }
    }

    /** Ten records of each codec. */
    static void write(Properties settings, String topic) throws Exception {
        for (String codec : new String[] {"none", "gzip", "snappy", "lz4"}) {
            settings.put("compression.type", codec);
            settings.put("linger.ms", "50");
            settings.put("acks", "all");
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
                List<Future<RecordMetadata>> sent = new ArrayList<>();
                for (int n = 0; n < 10; n++) {
                    String key = n % 3 == 0 ? null : "key " + n;
                    String value = n % 4 == 3 ? null : codec + " " + n;
                    sent.add(producer.send(new ProducerRecord<>(topic, 0, key, value)));
                }
                for (Future<RecordMetadata> each : sent) {
                    System.out.println("sent\t" + each.get().offset());
                }
            }
        }
    }

    static void read(Properties settings, String topic, int count) {
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            TopicPartition partition = new TopicPartition(topic, 0);
            consumer.assign(Arrays.asList(partition));
            consumer.seek(partition, 0);
            poll(consumer, count);
        } catch (RuntimeException error) {
            System.out.println("error\t" + error.getClass().getSimpleName());
        }
    }

    static void group(Properties settings, String topic, int count) {
        settings.put("max.poll.records", String.valueOf(count));
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(Arrays.asList(topic));
            poll(consumer, count);
            consumer.commitSync();
            System.out.println("committed\t" + consumer.committed(new TopicPartition(topic, 0)).offset());
        }
    }

    static void poll(KafkaConsumer<String, String> consumer, int count) {
        long deadline = System.nanoTime() + SECONDS * 1_000_000_000L;
        int found = 0;
        while (found < count && System.nanoTime() < deadline) {
            ConsumerRecords<String, String> records = consumer.poll(100);
            for (ConsumerRecord<String, String> each : records) {
                found++;
                System.out.println("read\t" + each.offset() + "\t" + each.key() + "\t" + each.value() + "\t" + timestamp(each));
            }
        }
    }

    /** Records of 0.9 have none. */
    static Object timestamp(ConsumerRecord<String, String> record) {
        try {
            return record.getClass().getMethod("timestamp").invoke(record);
        } catch (ReflectiveOperationException none) {
            return "none";
        }
    }
}
