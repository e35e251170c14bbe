import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests with JUnit against a broker of their own: mvn test. */
class OrdersTest {
    static final HttpClient CLIENT = HttpClient.newHttpClient();
    static Process broker;
    static String ready;

    @BeforeAll
    static void start() throws Exception {
        Path file = Files.createTempDirectory("barnabas-").resolve("ready.json");
        String command = Optional.ofNullable(System.getenv("BARNABAS")).orElse("barnabas");
        broker = new ProcessBuilder(command, "serve", "--dev", "--port", "0", "--ready-file", file.toString(),
                "--parent-pid", Long.toString(ProcessHandle.current().pid()))
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        while (!Files.exists(file)) {
            assertTrue(broker.isAlive(), "the broker has not started");
            Thread.sleep(20);
        }
        ready = Files.readString(file);
    }

    @AfterAll
    static void stop() throws Exception {
        broker.destroy();
        broker.waitFor();
    }

    @BeforeEach
    void reset() throws Exception {
        admin("POST", "/reset", "");
    }

    /** Returns the first value of a field in JSON; a JSON library does it better. */
    static String field(String json, String name) {
        Matcher found = Pattern.compile("\"" + name + "\":\\s*\"?([^\",}]*)").matcher(json);
        assertTrue(found.find(), json);
        return found.group(1);
    }

    /** Asks the admin API. */
    static String admin(String method, String path, String body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(field(ready, "admin") + path))
                .header("content-type", "application/json")
                .method(method, HttpRequest.BodyPublishers.ofString(body))
                .build();
        HttpResponse<String> answer = CLIENT.send(request, HttpResponse.BodyHandlers.ofString());
        assertTrue(answer.statusCode() < 400, answer.body());
        return answer.body();
    }

    static void publish(String value) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", field(ready, "bootstrap_servers"),
                "client.id", "shop", "retry.backoff.ms", 10);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>("orders", "ann", value)).get();
        }
    }

    @Test
    void anOrderIsPublished() throws Exception {
        publish("tea");
        assertEquals("tea", field(admin("GET", "/topics/orders/records", ""), "value"));
    }

    @Test
    void anOrderSurvivesALeaderThatMoves() throws Exception {
        String rule = admin("POST", "/faults",
                "{\"api\": \"Produce\", \"nth\": 1, \"error\": \"NOT_LEADER_OR_FOLLOWER\"}");
        publish("tea");
        assertEquals("1", field(admin("GET", "/faults/" + field(rule, "id"), ""), "hits"));
        assertEquals("tea", field(admin("GET", "/topics/orders/records", ""), "value"));
    }

    @Test
    void ordersAreKeptForAnHour() throws Exception {
        admin("POST", "/topics", "{\"name\": \"orders\", \"configs\": {\"retention.ms\": 3600000}}");
        publish("tea");
        admin("POST", "/clock/advance", "{\"hours\": 7}");
        assertEquals("[]", admin("GET", "/topics/orders/records", ""));
    }
}
