import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

/**
 * Writes messages with Apache Kafka's own classes: the lines of the files in golden/apache.
 *
 * <p>A line of standard input names a class, a version and, in hex, the message's content as anybody wrote it. A line of
 * standard output is the version, what Apache Kafka's class writes of the same content, and what it says that it is.
 */
public class Golden {
    public static void main(String[] unused) throws Exception {
        BufferedReader wanted = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = wanted.readLine(); line != null; line = wanted.readLine()) {
            String[] words = line.split(" ");
            System.out.println(words[1] + " " + written(words[0], Short.parseShort(words[1]), words[2]));
        }
    }

    static String written(String name, short version, String content) throws Exception {
        Class<?> type = Class.forName(name);
        Message message = (Message) type.getDeclaredConstructor().newInstance();
        message.read(new ByteBufferAccessor(ByteBuffer.wrap(HexFormat.of().parseHex(content))), version);
        ByteBuffer bytes = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] out = new byte[bytes.remaining()];
        bytes.get(out);
        Class<?> converter = Class.forName(name + "JsonConverter");
        JsonNode told = (JsonNode) converter.getMethod("write", type, short.class).invoke(null, message, version);
        return HexFormat.of().formatHex(out) + " " + told;
    }
}
