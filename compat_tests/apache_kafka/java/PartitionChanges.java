import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.InvalidReplicationFactorException;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.UsableBroker;
import org.apache.kafka.server.common.MetadataVersion;

/** Asks Apache Kafka's builder of partition changes, and its placer of replicas: a line of JSON in, a line out. */
public class PartitionChanges {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] unused) throws Exception {
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            JsonNode question = JSON.readTree(line);
            System.out.println(JSON.writeValueAsString(question.has("brokers") ? placed(question) : changed(question)));
        }
    }

    private static List<Integer> list(JsonNode numbers) {
        List<Integer> found = new ArrayList<>();
        numbers.forEach(each -> found.add(each.asInt()));
        return found;
    }

    private static int[] array(JsonNode numbers) {
        return list(numbers).stream().mapToInt(Integer::intValue).toArray();
    }

    private static Object changed(JsonNode question) {
        JsonNode partition = question.get("partition");
        JsonNode wanted = question.get("wanted");
        List<Uuid> directories = new ArrayList<>();
        partition.get("directories").forEach(each -> directories.add(new Uuid(0, each.asLong())));
        PartitionRegistration registration = new PartitionRegistration.Builder()
            .setReplicas(array(partition.get("replicas")))
            .setDirectories(directories.toArray(new Uuid[0]))
            .setIsr(array(partition.get("isr")))
            .setRemovingReplicas(array(partition.get("removing")))
            .setAddingReplicas(array(partition.get("adding")))
            .setElr(array(partition.get("elr")))
            .setLastKnownElr(array(partition.get("last_known_elr")))
            .setLeader(partition.get("leader").asInt())
            .setLeaderRecoveryState(LeaderRecoveryState.of((byte) partition.get("leader_recovery_state").asInt()))
            .setLeaderEpoch(5)
            .setPartitionEpoch(7)
            .build();
        List<Integer> acceptable = list(question.get("acceptable"));
        PartitionChangeBuilder builder = new PartitionChangeBuilder(
            registration, Uuid.ZERO_UUID, 3, acceptable::contains,
            MetadataVersion.fromFeatureLevel((short) question.get("level").asInt()),
            question.get("min_isr").asInt(), question.get("keeps_eligible").asBoolean());
        builder.setElection(PartitionChangeBuilder.Election.valueOf(wanted.get("election").asText()));
        builder.setDefaultDirProvider(id -> DirectoryId.UNASSIGNED);
        if (wanted.has("isr")) builder.setTargetIsr(list(wanted.get("isr")));
        if (wanted.has("replicas")) builder.setTargetReplicas(list(wanted.get("replicas")));
        if (wanted.has("removing")) builder.setTargetRemoving(list(wanted.get("removing")));
        if (wanted.has("adding")) builder.setTargetAdding(list(wanted.get("adding")));
        if (wanted.has("stopped_uncleanly")) {
            builder.setUncleanShutdownReplicas(List.of(wanted.get("stopped_uncleanly").asInt()));
        }
        if (wanted.has("leader_recovery_state")) {
            builder.setTargetLeaderRecoveryState(
                LeaderRecoveryState.of((byte) wanted.get("leader_recovery_state").asInt()));
        }
        return builder.build().map(each -> told((PartitionChangeRecord) each.message())).orElse(null);
    }

    private static Object told(PartitionChangeRecord record) {
        TreeMap<String, Object> told = new TreeMap<>();
        told.put("isr", record.isr());
        told.put("leader", record.leader());
        told.put("replicas", record.replicas());
        told.put("removing_replicas", record.removingReplicas());
        told.put("adding_replicas", record.addingReplicas());
        told.put("leader_recovery_state", record.leaderRecoveryState());
        told.put("eligible_leader_replicas", record.eligibleLeaderReplicas());
        told.put("last_known_elr", record.lastKnownElr());
        told.put("directories", record.directories() == null ? null
            : record.directories().stream().map(Uuid::getLeastSignificantBits).toList());
        return told;
    }

    private static Object placed(JsonNode question) {
        List<UsableBroker> brokers = new ArrayList<>();
        for (JsonNode each : question.get("brokers")) {
            Optional<String> rack = each.get("rack").isNull() ? Optional.empty() : Optional.of(each.get("rack").asText());
            brokers.add(new UsableBroker(each.get("id").asInt(), rack, each.get("fenced").asBoolean()));
        }
        int drawn = question.get("drawn").asInt();
        Random random = new Random() {
            @Override
            public int nextInt(int bound) {
                return drawn % bound; // so that the order of draws does not matter
            }
        };
        ClusterDescriber cluster = new ClusterDescriber() {
            @Override
            public Iterator<UsableBroker> usableBrokers() {
                return brokers.iterator();
            }

            @Override
            public Uuid defaultDir(int brokerId) {
                return DirectoryId.UNASSIGNED;
            }
        };
        PlacementSpec spec = new PlacementSpec(
            0, question.get("partitions").asInt(), (short) question.get("replication_factor").asInt());
        try {
            return new StripedReplicaPlacer(random).place(spec, cluster).assignments().stream()
                .map(PartitionAssignment::replicas).toList();
        } catch (InvalidReplicationFactorException refusal) {
            return refusal.getMessage();
        }
    }
}
