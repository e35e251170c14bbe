import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.Utils;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * Asks Apache Kafka's assignors and its hash of metadata: a line of JSON in, a line of JSON out.
 *
 * <p>The tables that the assignors are given are made as the group coordinator makes them, so that their orders are its.
 */
public class Assignors {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, PartitionAssignor> ASSIGNORS =
        Map.of("uniform", new UniformAssignor(), "range", new RangeAssignor(), "simple", new SimpleAssignor());

    record Topic(String name, Uuid id, List<List<String>> racks) implements CoordinatorMetadataImage.TopicMetadata {
        @Override
        public int partitionCount() {
            return racks.size();
        }

        @Override
        public List<String> partitionRacks(int partition) {
            return new ArrayList<>(racks.get(partition));
        }
    }

    record Topics(Map<String, Topic> byName, Map<Uuid, Topic> byId)
        implements CoordinatorMetadataImage, SubscribedTopicDescriber {
        @Override
        public Set<Uuid> topicIds() {
            return byId.keySet();
        }

        @Override
        public Set<String> topicNames() {
            return byName.keySet();
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(String name) {
            return Optional.ofNullable(byName.get(name));
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(Uuid id) {
            return Optional.ofNullable(byId.get(id));
        }

        @Override
        public CoordinatorMetadataDelta emptyDelta() {
            throw new UnsupportedOperationException();
        }

        @Override
        public long version() {
            return 0;
        }

        @Override
        public boolean isEmpty() {
            return byName.isEmpty();
        }

        @Override
        public int numPartitions(Uuid id) {
            return byId.containsKey(id) ? byId.get(id).partitionCount() : -1;
        }

        @Override
        public Set<String> racksForPartition(Uuid id, int partition) {
            return Set.copyOf(byId.get(id).partitionRacks(partition));
        }
    }

    public static void main(String[] unused) throws Exception {
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            JsonNode question = JSON.readTree(line);
            Topics topics = topics(question.get("topics"));
            Object answer = question.has("assignor") ? assignment(question, topics) : hashes(topics);
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    private static Uuid uuid(String hex) {
        ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(hex));
        return new Uuid(bytes.getLong(), bytes.getLong());
    }

    private static String hex(Uuid id) {
        return String.format("%016x%016x", id.getMostSignificantBits(), id.getLeastSignificantBits());
    }

    /** Topics by their ids in hex: the name, and the racks of each partition. */
    private static Topics topics(JsonNode told) {
        Topics topics = new Topics(new HashMap<>(), new HashMap<>());
        told.properties().forEach(entry -> {
            List<List<String>> racks = new ArrayList<>();
            for (JsonNode partition : entry.getValue().get("partitions")) {
                List<String> its = new ArrayList<>();
                partition.forEach(rack -> its.add(rack.asText()));
                racks.add(its);
            }
            Topic topic = new Topic(entry.getValue().get("name").asText(), uuid(entry.getKey()), racks);
            topics.byName.put(topic.name, topic);
            topics.byId.put(topic.id, topic);
        });
        return topics;
    }

    private static Map<String, Long> hashes(Topics topics) {
        Map<String, Long> found = new TreeMap<>();
        topics.byName.keySet().forEach(name -> found.put(name, Utils.computeTopicHash(name, topics)));
        long all = Utils.computeGroupHash(found);
        found.put("", all);
        return found;
    }

    private static Map<String, Map<String, Set<Integer>>> assignment(JsonNode question, Topics topics) {
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        Set<Set<Uuid>> subscriptions = new HashSet<>();
        for (JsonNode member : question.get("members")) {
            String memberId = member.get("id").asText();
            List<String> names = new ArrayList<>();
            member.get("topics").forEach(name -> names.add(name.asText()));
            Collections.sort(names); // as in the member's record
            Set<Uuid> topicIds = new LinkedHashSet<>();
            new HashSet<>(names).forEach(name -> topicIds.add(topics.byName.get(name).id));
            subscriptions.add(topicIds);
            Map<Uuid, Set<Integer>> assigned = new HashMap<>();
            member.get("assigned").properties().forEach(entry -> {
                List<Integer> partitions = new ArrayList<>();
                entry.getValue().forEach(partition -> partitions.add(partition.asInt()));
                Uuid id = uuid(entry.getKey());
                assigned.put(id, new HashSet<>(partitions));
                partitions.forEach(each -> owners.computeIfAbsent(id, x -> new HashMap<>()).put(each, memberId));
            });
            Optional<String> instanceId = Optional.ofNullable(member.get("instance").textValue());
            Assignment target = new Assignment(assigned);
            members.put(
                memberId, new MemberSubscriptionAndAssignmentImpl(Optional.empty(), instanceId, topicIds, target));
        }
        SubscriptionType type =
            subscriptions.size() < 2 ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        GroupSpec group = new GroupSpecImpl(members, type, owners);
        GroupAssignment found = ASSIGNORS.get(question.get("assignor").asText()).assign(group, topics);
        Map<String, Map<String, Set<Integer>>> told = new TreeMap<>();
        members.keySet().forEach(memberId -> told.put(memberId, new TreeMap<>()));
        found.members().forEach((memberId, its) -> its.partitions().forEach((id, partitions) -> {
            if (!partitions.isEmpty()) {
                told.get(memberId).put(hex(id), partitions);
            }
        }));
        return told;
    }
}
