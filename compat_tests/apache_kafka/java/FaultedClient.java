import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * One client at a time, which does what a line on standard input says, and answers with a line: <code>ok RESULT</code>, or
 * <code>error CLASS: MESSAGE</code>.
 *
 * <p>A line has a verb, a topic and the properties of the client, between tabs; a vertical tab is a line break of a value. For as long as a producer or a consumer is open,
 * the verbs that follow are about it.
 */
public class FaultedClient {
    static KafkaProducer<byte[], byte[]> producer;
    static KafkaConsumer<byte[], byte[]> consumer;
    static boolean isTransactional;

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t");
            Map<String, Object> properties = new HashMap<>();
            for (int index = 2; index < words.length; index++) {
                properties.put(words[index].split("=", 2)[0], words[index].split("=", 2)[1].replace('\u000b', '\n'));
            }
            String answer;
            try {
                answer = "ok " + done(words[0], words[1], properties);
            } catch (Exception error) {
                Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
                answer = "error " + cause.getClass().getSimpleName() + ": " + cause.getMessage();
            }
            System.out.println(answer.replace('\n', ' '));
        }
    }

    static Object done(String verb, String topic, Map<String, Object> properties) throws Exception {
        switch (verb) {
            case "open":
                isTransactional = properties.containsKey("transactional.id");
                producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
                return producer.partitionsFor(topic).size();
            case "send":
                return send(topic);
            case "close":
                producer.close(Duration.ZERO);
                return "";
            case "join":
                consumer = new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
                consumer.subscribe(List.of(topic));
                return read(1);
            case "read":
                return read(1);
            case "commit":
                consumer.commitSync();
                return consumer.position(new TopicPartition(topic, 0));
            case "leave":
                consumer.close();
                return "";
            case "commit offset":
                return commitOffset(new TopicPartition(topic, 0), properties);
            case "create":
                try (Admin admin = Admin.create(properties)) {
                    admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
                }
                return "";
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    static long send(String topic) throws Exception {
        if (isTransactional) {
            producer.initTransactions();
            producer.beginTransaction();
        }
        var sent = producer.send(new ProducerRecord<>(topic, "tea".getBytes()));
        if (isTransactional) {
            producer.commitTransaction();
        }
        return sent.get().offset();
    }

    static String read(int count) {
        StringBuilder values = new StringBuilder();
        for (int found = 0; found < count; ) {
            for (var record : consumer.poll(Duration.ofMillis(100))) {
                values.append(new String(record.value())).append(' ');
                found++;
            }
        }
        return values.toString().strip();
    }

    static long commitOffset(TopicPartition partition, Map<String, Object> properties) {
        try (var one = new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            one.assign(List.of(partition));
            one.commitSync(Map.of(partition, new OffsetAndMetadata(7)));
            return one.committed(Set.of(partition)).get(partition).offset();
        }
    }
}
