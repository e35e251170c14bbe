import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Base64.Decoder;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's console tools one after the other in one JVM, which would else start anew for each.
 *
 * <p>A line of standard input is a call: the main class, then what it reads, then its arguments, each in base64 and with
 * spaces between. A line of standard output is what came of it: the exit code, the output, the complaints.
 */
public class Tools {
    /** What a tool that wants to end the JVM gets instead. Some catch it, and want to end with an error then. */
    static class Ended extends RuntimeException {
        Ended() {
            super("ended", null, false, false);
        }
    }

    /** What tools put off to the end of the JVM: the console producer sends its last records then. */
    static final List<Runnable> atTheEnd = new ArrayList<>();

    /** The exit code that a tool first wanted; null while it has wanted none. */
    static Integer wanted;

    /** Where tools write, the same for all of them: those in Scala keep the stream that they found first. */
    static final ByteArrayOutputStream output = new ByteArrayOutputStream();

    static final ByteArrayOutputStream complaints = new ByteArrayOutputStream();

    public static void main(String[] unused) throws Exception {
        PrintStream answers = System.out;
        System.setOut(new PrintStream(output, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(complaints, true, StandardCharsets.UTF_8));
        BufferedReader calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        Exit.Procedure end = (status, message) -> {
            if (message != null) {
                System.err.println(message);
            }
            if (wanted == null) {
                wanted = status;
            }
            throw new Ended();
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        Exit.setShutdownHookAdder((name, runnable) -> atTheEnd.add(runnable));
        for (String call = calls.readLine(); call != null; call = calls.readLine()) {
            answers.println(call(call));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    static String call(String line) throws Exception {
        Decoder decoder = Base64.getDecoder();
        byte[][] words = Arrays.stream(line.split(" ", -1)).map(decoder::decode).toArray(byte[][]::new);
        String[] arguments = Arrays.stream(words).skip(2).map(word -> new String(word, StandardCharsets.UTF_8)).toArray(String[]::new);
        output.reset();
        complaints.reset();
        InputStream in = System.in;
        System.setIn(new ByteArrayInputStream(words[1]));
        int status;
        try {
            status = run(Class.forName(new String(words[0], StandardCharsets.UTF_8)), arguments);
            atTheEnd.forEach(Runnable::run);
            atTheEnd.clear();
        } finally {
            System.out.flush();
            System.err.flush();
            System.setIn(in);
        }
        Base64.Encoder encoder = Base64.getEncoder();
        return status + " " + encoder.encodeToString(output.toByteArray()) + " " + encoder.encodeToString(complaints.toByteArray());
    }

    static int run(Class<?> tool, String[] arguments) {
        wanted = null;
        try {
            tool.getMethod("main", String[].class).invoke(null, (Object) arguments);
            return wanted == null ? 0 : wanted;
        } catch (InvocationTargetException thrown) {
            if (thrown.getCause() instanceof Ended) {
                return wanted;
            }
            thrown.getCause().printStackTrace();
            return 1;
        } catch (ReflectiveOperationException noTool) {
            noTool.printStackTrace();
            return 1;
        }
    }
}
