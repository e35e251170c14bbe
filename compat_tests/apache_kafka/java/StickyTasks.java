import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentMemberSpec;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.assignor.TopologyDescriber;

/** Asks Apache Kafka's assignor of tasks: a line of JSON in, a line of JSON out. */
public class StickyTasks {
    private static final ObjectMapper JSON = new ObjectMapper();

    record Subtopologies(TreeMap<String, JsonNode> byId) implements TopologyDescriber {
        @Override
        public List<String> subtopologies() {
            return List.copyOf(byId.keySet());
        }

        @Override
        public int maxNumInputPartitions(String id) {
            return byId.get(id).get("tasks").asInt();
        }

        @Override
        public boolean isStateful(String id) {
            return byId.get(id).get("stateful").asBoolean();
        }
    }

    public static void main(String[] unused) throws Exception {
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            System.out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
        }
    }

    private static Object answer(JsonNode question) {
        TreeMap<String, JsonNode> subtopologies = new TreeMap<>();
        question.get("subtopologies").properties().forEach(each -> subtopologies.put(each.getKey(), each.getValue()));
        Map<String, AssignmentMemberSpec> members = new HashMap<>();
        for (JsonNode member : question.get("members")) {
            members.put(member.get("id").asText(), new AssignmentMemberSpec(
                Optional.empty(), Optional.empty(), tasks(member.get("active")), tasks(member.get("standby")), Map.of(),
                member.get("process").asText(), Map.of(), Map.of(), Map.of()));
        }
        GroupSpecImpl group =
            new GroupSpecImpl(members, Map.of("num.standby.replicas", question.get("standbys").asText()));
        Map<String, List<Map<String, Set<Integer>>>> told = new TreeMap<>();
        new StickyTaskAssignor().assign(group, new Subtopologies(subtopologies)).members().forEach((member, its) ->
            told.put(member, List.of(sorted(its.activeTasks()), sorted(its.standbyTasks()))));
        return told;
    }

    private static Map<String, Set<Integer>> tasks(JsonNode told) {
        Map<String, Set<Integer>> tasks = new HashMap<>();
        told.properties().forEach(entry -> {
            Set<Integer> partitions = new HashSet<>();
            entry.getValue().forEach(each -> partitions.add(each.asInt()));
            tasks.put(entry.getKey(), partitions);
        });
        return tasks;
    }

    private static Map<String, Set<Integer>> sorted(Map<String, Set<Integer>> tasks) {
        Map<String, Set<Integer>> sorted = new TreeMap<>();
        tasks.forEach((subtopology, partitions) -> sorted.put(subtopology, new TreeSet<>(partitions)));
        return sorted;
    }
}
