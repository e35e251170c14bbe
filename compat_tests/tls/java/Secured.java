import java.io.FileReader;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Creates a topic, writes an aborted and a committed transaction, and reads what counts in a group. */
public class Secured {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        try (FileReader file = new FileReader(args[0])) {
            settings.load(file);
        }
        String topic = args[1];
        int count = Integer.parseInt(args[2]);
        String filler = "x".repeat(Integer.parseInt(args[3]));
        try (Admin admin = Admin.create(settings)) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
        }
        Properties forProducer = new Properties();
        forProducer.putAll(settings);
        forProducer.put("transactional.id", topic);
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(forProducer, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, "aborted"));
            producer.flush();
            producer.abortTransaction();
            producer.beginTransaction();
            for (int number = 0; number < count; number++) {
                producer.send(new ProducerRecord<>(topic, number + " " + filler));
            }
            producer.commitTransaction();
        }
        Properties forConsumer = new Properties();
        forConsumer.putAll(settings);
        forConsumer.put("group.id", topic);
        forConsumer.put("auto.offset.reset", "earliest");
        forConsumer.put("isolation.level", "read_committed");
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(forConsumer, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            int read = 0;
            long deadline = System.currentTimeMillis() + 60_000;
            while (read < count && System.currentTimeMillis() < deadline) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    if (!record.value().equals(read + " " + filler)) {
                        throw new IllegalStateException("not the record that was written: " + record);
                    }
                    read++;
                }
            }
            consumer.commitSync();
            System.out.println(read);
        }
    }
}
