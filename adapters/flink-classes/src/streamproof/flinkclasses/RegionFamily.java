package streamproof.flinkclasses;

import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.flink.runtime.execution.ExecutionState;
import org.apache.flink.runtime.executiongraph.IntermediateResult;
import org.apache.flink.runtime.scheduler.SchedulerOperations;
import org.apache.flink.runtime.scheduler.strategy.ConsumedPartitionGroup;
import org.apache.flink.runtime.scheduler.strategy.ExecutionVertexID;
import org.apache.flink.runtime.scheduler.strategy.PipelinedRegionSchedulingStrategy;
import org.apache.flink.runtime.scheduler.strategy.SchedulingStrategy;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/**
 * The model `region_core`, variant `flink`: PipelinedRegionSchedulingStrategy over the pipelined regions and the
 * ConsumedPartitionGroups of an ExecutionGraph. Flink schedules in the call that makes a region ready; here the region
 * waits for the action `schedule`, and is scheduled before a task ends or is reset.
 */
final class RegionFamily extends Family {
    private JobWorld job;
    private SchedulingStrategy strategy;
    private final Set<String> allocated = new LinkedHashSet<>();
    private final Map<String, ConsumedPartitionGroup> groups = new LinkedHashMap<>();
    private int restarts;

    @Override
    void reset(JsonNode parameters, String variant) throws Exception {
        job = new JobWorld(parameters.get("topology").asText());
        restarts = parameters.path("restarts").asInt(0);
        allocated.clear();
        groups.clear();
        for (Map.Entry<String, IntermediateResult> dataset : job.datasets.entrySet()) {
            nameGroups(dataset.getKey(), dataset.getValue());
        }
        strategy = Fault.wrap(SchedulingStrategy.class, new PipelinedRegionSchedulingStrategy(
                Fault.wrap(SchedulerOperations.class, this::allocate), job.topology));
        strategy.startScheduling();
    }

    /** The names of the model: the dataset, with its reader if there are several, and the number of the group. */
    private void nameGroups(String dataset, IntermediateResult result) {
        Map<String, Set<ConsumedPartitionGroup>> byReader = new LinkedHashMap<>();
        job.tasks.forEach((name, task) -> {
            for (ConsumedPartitionGroup group : task.getAllConsumedPartitionGroups()) {
                if (group.getIntermediateDataSetID().equals(result.getId())) {
                    byReader.computeIfAbsent(task.getJobVertex().getName(), k -> new LinkedHashSet<>()).add(group);
                }
            }
        });
        byReader.forEach((reader, found) -> {
            int number = 0;
            for (ConsumedPartitionGroup group : found) {
                String name = dataset + (byReader.size() > 1 ? reader : "") + (found.size() > 1 ? "/" + number : "");
                groups.put(name, group);
                number++;
            }
        });
    }

    private void allocate(List<ExecutionVertexID> ids) {
        ids.forEach(id -> require(allocated.add(job.names.get(id)), "allocated twice: " + job.names.get(id)));
    }

    @Override
    Map<String, Object> state() {
        Map<String, Object> statuses = job.statuses();
        statuses.replaceAll((t, s) -> s.equals("FAILED") ? "ENDED" : s);
        Map<String, Object> unfinished = new LinkedHashMap<>();
        groups.forEach((name, group) -> {
            if (group.getResultPartitionType().isBlockingOrBlockingPersistentResultPartition()) {
                unfinished.put(name, group.getNumberOfUnfinishedPartitions());
            }
        });
        Map<String, Object> found = new LinkedHashMap<>(Map.of("status", statuses));
        if (!unfinished.isEmpty()) {
            found.put("unfinished", unfinished);
        }
        return found;
    }

    @Action
    void schedule(String r) {
        require(job.regions.containsKey(r), "Flink has no region " + r + " but " + job.regions.keySet());
        require(allocated.containsAll(job.regions.get(r)), "not allocated: " + r + " but " + allocated);
        take(r);
    }

    private void take(String r) {
        for (String t : job.regions.get(r)) {
            require(allocated.remove(t), "allocated without its region: " + t);
            job.execution(t).transitionState(ExecutionState.SCHEDULED);
        }
    }

    private void flush() {
        while (!allocated.isEmpty()) {
            String r = job.regionOf(allocated.iterator().next());
            take(r);
            happenedBefore("schedule", Map.of("r", r));
        }
    }

    private void requireState(String t, ExecutionState... states) {
        require(List.of(states).contains(job.status(t)), t + " is " + job.status(t));
    }

    @Action
    void deploy(String t) {
        requireState(t, ExecutionState.SCHEDULED);
        job.deploy(t);
    }

    @Action
    void run(String t) {
        requireState(t, ExecutionState.DEPLOYING);
        job.report(t, ExecutionState.INITIALIZING, null);
        job.report(t, ExecutionState.RUNNING, null);
    }

    @Action
    void finish(String t) {
        requireState(t, ExecutionState.RUNNING);
        job.report(t, ExecutionState.FINISHED, null);
        strategy.onExecutionStateChange(job.tasks.get(t).getID(), ExecutionState.FINISHED);
    }

    @Action
    void stop(String t) {
        requireState(t, ExecutionState.SCHEDULED, ExecutionState.DEPLOYING, ExecutionState.RUNNING);
        flush();
        job.report(t, ExecutionState.FAILED, new Exception("seeded"));
    }

    @Action
    void renew(String t) {
        requireState(t, ExecutionState.FINISHED, ExecutionState.FAILED);
        require(restarts > 0, "no restart is left");
        restarts--;
        flush();
        job.tasks.get(t).resetForNewExecution();
        Set<ExecutionVertexID> region = new HashSet<>();
        for (String other : job.regions.get(job.regionOf(t))) {
            region.add(job.tasks.get(other).getID());
            if (job.status(other) != ExecutionState.CREATED) {
                return; // Flink restarts a region when all its tasks are reset
            }
        }
        strategy.restartTasks(region);
    }
}
