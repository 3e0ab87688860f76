package streamproof.flinkclasses;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.flink.runtime.execution.ExecutionState;
import org.apache.flink.runtime.executiongraph.failover.FailoverStrategy;
import org.apache.flink.runtime.executiongraph.failover.RestartPipelinedRegionFailoverStrategy;
import org.apache.flink.runtime.executiongraph.failover.ResultPartitionAvailabilityChecker;
import org.apache.flink.runtime.jobgraph.IntermediateResultPartitionID;
import org.apache.flink.runtime.scheduler.strategy.ExecutionVertexID;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/** No model, but two functions of a job graph, for graphs.py: its pipelined regions, and the tasks that restart with a task. */
final class GraphFamily extends Family {
    private JobWorld job;
    private List<String> restarting;

    @Override
    void reset(JsonNode parameters, String variant) throws Exception {
        job = new JobWorld(parameters.get("topology").asText());
        restarting = List.of();
    }

    @Override
    Map<String, Object> state() {
        return Map.of("regions", new ArrayList<>(job.regions.values()), "restarting", restarting);
    }

    /** The tasks that restart if `failed` fails, these partitions are unavailable and these tasks are CREATED. */
    @Action
    void restart(String failed, String[] unavailable, String[] created) {
        Set<String> waiting = Set.of(created);
        job.tasks.forEach((name, task) -> {
            if (!waiting.contains(name)) {
                job.execution(name).transitionState(ExecutionState.RUNNING);
            }
        });
        Set<IntermediateResultPartitionID> lost = new HashSet<>();
        for (String p : unavailable) {
            lost.add(job.partitions.get(p).getPartitionId());
        }
        ResultPartitionAvailabilityChecker checker = Fault.wrap(ResultPartitionAvailabilityChecker.class, id -> !lost.contains(id));
        FailoverStrategy strategy =
                Fault.wrap(FailoverStrategy.class, new RestartPipelinedRegionFailoverStrategy(job.topology, checker));
        Set<String> chosen = new TreeSet<>();
        for (ExecutionVertexID id : strategy.getTasksNeedingRestart(job.tasks.get(failed).getID(), new Exception("seeded"))) {
            chosen.add(job.names.get(id));
        }
        restarting = new ArrayList<>(chosen);
    }
}
