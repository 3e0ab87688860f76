package streamproof.flinkclasses;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

/** Answers the calls of {@code streamproof drive} (docs/how-to-drive.md) with classes of Flink. */
public final class Main {
    /** Model to the family of classes that implements its actions. */
    private static final Map<String, Supplier<Family>> FAMILIES = new LinkedHashMap<>();

    static {
        FAMILIES.put("graphs", GraphFamily::new);
        FAMILIES.put("failover", FailoverFamily::new);
        FAMILIES.put("region_core", RegionFamily::new);
        FAMILIES.put("buffer_shares", BufferFamily::new);
        FAMILIES.put("credit_channel", CreditFamily::new);
        FAMILIES.put("slot_pool", SlotFamily::new);
        FAMILIES.put("checkpoints", CheckpointFamily::new);
        FAMILIES.put("partition_lifecycle", PartitionFamily::new);
    }

    private Main() {}

    /** Reads calls until {@code quit} or the end of the input. The only argument is a fault, as {@link Fault} reads it. */
    public static void main(String[] args) throws IOException {
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        if (args.length > 0) {
            Fault.parse(args[0]);
        }
        ObjectMapper json = new ObjectMapper();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Family family = null;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode call = json.readTree(line);
            Map<String, Object> answer = new LinkedHashMap<>();
            answer.put("id", call.get("id").asLong());
            switch (call.get("call").asText()) {
                case "reset":
                    Fault.forget();
                    family = FAMILIES.getOrDefault(call.get("model").asText(), Unknown::new).get();
                    family.answerReset(call, answer);
                    break;
                case "do":
                    family.answerDo(call, answer);
                    break;
                case "observe":
                    family.answerObserve(answer);
                    break;
                default:
                    return;
            }
            for (Map<String, Object> one : family.lines(answer)) {
                out.println(json.writeValueAsString(one));
            }
            out.flush();
        }
    }

    /** No family is known for the model. */
    private static final class Unknown extends Family {
        @Override
        void reset(JsonNode parameters, String variant) {
            throw new IllegalArgumentException("models of this adapter: " + FAMILIES.keySet());
        }

        @Override
        Map<String, Object> state() {
            return Map.of();
        }
    }
}
