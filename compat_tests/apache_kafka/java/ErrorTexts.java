import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Prints each error of the protocol: its code, whether it is retriable, its text. */
public class ErrorTexts {
    public static void main(String[] arguments) {
        for (Errors each : Errors.values()) {
            if (each != Errors.NONE) {
                boolean isRetriable = each.exception() instanceof RetriableException;
                System.out.println(each.code() + "\t" + isRetriable + "\t" + each.message());
            }
        }
    }
}
