import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

/**
 * Says how Apache Kafka answers a request that failed as a whole.
 *
 * <p>A line in: API key, version, error code, the request's body in hex. A line out: the response's body in hex, or a dash
 * where there is no response.
 */
public class ErrorResponses {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", -1);
            short version = Short.parseShort(words[1]);
            ByteBuffer body = ByteBuffer.wrap(HexFormat.of().parseHex(words[3]));
            AbstractRequest request = AbstractRequest.parseRequest(
                ApiKeys.forId(Short.parseShort(words[0])), version, new ByteBufferAccessor(body)).request;
            AbstractResponse response = request.getErrorResponse(0, Errors.forCode(Short.parseShort(words[2])).exception());
            System.out.println(response == null ? "-" : inHex(response, version));
        }
    }

    private static String inHex(AbstractResponse response, short version) {
        ByteBuffer buffer = MessageUtil.toByteBufferAccessor(response.data(), version).buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
