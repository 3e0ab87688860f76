package streamproof.flinkclasses;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import org.apache.flink.runtime.execution.ExecutionState;
import org.apache.flink.runtime.executiongraph.Execution;
import org.apache.flink.runtime.executiongraph.IntermediateResultPartition;
import org.apache.flink.runtime.executiongraph.failover.FailoverStrategy;
import org.apache.flink.runtime.executiongraph.failover.RestartPipelinedRegionFailoverStrategy;
import org.apache.flink.runtime.io.network.partition.PartitionNotFoundException;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.scheduler.ExecutionVertexVersion;
import org.apache.flink.runtime.scheduler.ExecutionVertexVersioner;
import org.apache.flink.runtime.scheduler.strategy.ExecutionVertexID;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/**
 * The model `failover`, variant `flink`: RestartPipelinedRegionFailoverStrategy, ExecutionVertexVersioner, and the
 * ExecutionGraph with its pipelined regions and the release and tracking of partitions. What DefaultScheduler does
 * between them is written here.
 */
final class FailoverFamily extends Family {
    private JobWorld job;
    private FailoverStrategy strategy;
    private ExecutionVertexVersioner versioner;
    private final List<Set<ExecutionVertexVersion>> versions = new ArrayList<>();
    private final List<Set<String>> restarting = new ArrayList<>();
    private final List<List<CompletableFuture<?>>> cancelled = new ArrayList<>();
    private final Set<ResultPartitionID> gone = new HashSet<>();
    private boolean unsent;
    private String status;
    private int decisions;
    private int failures;
    private int losses;

    @Override
    void reset(JsonNode parameters, String variant) throws Exception {
        job = new JobWorld(parameters.get("topology").asText());
        strategy = Fault.wrap(FailoverStrategy.class, new RestartPipelinedRegionFailoverStrategy(
                job.topology, job.graph.getResultPartitionAvailabilityChecker()));
        versioner = new ExecutionVertexVersioner();
        unsent = parameters.path("unsent").asBoolean(false);
        failures = parameters.get("failures").asInt();
        losses = parameters.get("losses").asInt();
        decisions = parameters.path("restarts").asInt(failures + losses);
        versions.clear();
        restarting.clear();
        cancelled.clear();
        gone.clear();
        status = "RUNNING";
    }

    @Override
    Map<String, Object> state() {
        Map<String, Object> partitions = new LinkedHashMap<>();
        job.partitions.forEach((name, partition) -> {
            if (!partition.getResultType().isHybridResultPartition()) {
                partitions.put(name, stateOf(partition));
            }
        });
        Map<String, Object> sets = new LinkedHashMap<>();
        for (int k = 0; k < restarting.size(); k++) {
            sets.put(String.valueOf(k), restarting.get(k));
        }
        Map<String, Object> attempts = new LinkedHashMap<>();
        job.tasks.forEach((name, task) -> attempts.put(name, task.getCurrentExecutionAttempt().getAttemptNumber()));
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("job", status);
        found.put("status", job.statuses());
        found.put("attempt", attempts);
        if (!partitions.isEmpty()) {
            found.put("partition", partitions);
        }
        found.put("decided", restarting.size());
        found.put("restarting", sets);
        found.put("failures_left", failures);
        found.put("losses_left", losses);
        return found;
    }

    private String stateOf(IntermediateResultPartition partition) {
        boolean finished = job.status(job.producer(partition)) == ExecutionState.FINISHED;
        if (!job.tracker.isPartitionTracked(job.id(partition))) {
            return finished && job.released.contains(job.id(partition)) ? "RELEASED" : "NONE";
        }
        return !finished ? "PRODUCING" : gone.contains(job.id(partition)) ? "GONE" : "STORED";
    }

    private void requireRunning() {
        require(status.equals("RUNNING"), "the job has ended");
    }

    private void requireState(String t, ExecutionState... states) {
        requireRunning();
        require(List.of(states).contains(job.status(t)), t + " is " + job.status(t));
    }

    private static final ExecutionState[] ACTIVE = {
        ExecutionState.SCHEDULED, ExecutionState.DEPLOYING, ExecutionState.INITIALIZING, ExecutionState.RUNNING
    };

    @Action
    void schedule(String r) {
        requireRunning();
        require(job.regions.containsKey(r), "Flink has no region " + r + " but " + job.regions.keySet());
        for (String t : job.regions.get(r)) {
            requireState(t, ExecutionState.CREATED);
            for (IntermediateResultPartition p : job.inputs(t)) {
                boolean inside = job.regions.get(r).contains(job.producer(p));
                ExecutionState producer = job.status(job.producer(p));
                boolean early = p.getResultType().isHybridResultPartition();
                require(inside || (early ? producer != ExecutionState.CREATED : producer == ExecutionState.FINISHED), t + " waits");
            }
        }
        job.regions.get(r).forEach(t -> job.execution(t).transitionState(ExecutionState.SCHEDULED));
    }

    @Action
    void deploy(String t) {
        requireState(t, ExecutionState.SCHEDULED);
        job.deploy(t);
    }

    @Action
    void initialize(String t) {
        requireState(t, ExecutionState.DEPLOYING);
        job.report(t, ExecutionState.INITIALIZING, null);
    }

    @Action
    void run(String t) {
        requireState(t, ExecutionState.INITIALIZING);
        job.report(t, ExecutionState.RUNNING, null);
    }

    @Action
    void finish(String t) {
        requireState(t, ExecutionState.RUNNING);
        for (IntermediateResultPartition p : job.inputs(t)) {
            ExecutionState producer = job.status(job.producer(p));
            boolean there = List.of(ACTIVE).contains(producer) || producer == ExecutionState.FINISHED;
            require(there || JobWorld.outlives(p.getResultType()), "an input of " + t + " is missing");
        }
        job.report(t, ExecutionState.FINISHED, null);
    }

    @Action
    void complete() {
        requireRunning();
        require(restarting.stream().allMatch(Set::isEmpty), "a decision is pending");
        job.tasks.keySet().forEach(t -> requireState(t, ExecutionState.FINISHED));
        status = "FINISHED";
    }

    @Action
    void fail(String t) throws Exception {
        requireState(t, ACTIVE);
        require(failures > 0 && restarting.size() < decisions, "no failure is left");
        failures--;
        failOver(t, new Exception("seeded"));
    }

    @Action
    void lose(String p) {
        requireRunning();
        require(losses > 0 && stateOf(job.partitions.get(p)).equals("STORED"), p + " is not stored");
        losses--;
        gone.add(job.id(job.partitions.get(p)));
    }

    @Action
    void untrack(String p) {
        requireRunning();
        require(losses > 0 && job.tracker.isPartitionTracked(job.id(job.partitions.get(p))), p + " is not tracked");
        losses--;
        job.tracker.stopTrackingPartitions(List.of(job.id(job.partitions.get(p))));
    }

    @Action
    void miss(String t, String p) throws Exception {
        requireState(t, ExecutionState.INITIALIZING, ExecutionState.RUNNING);
        IntermediateResultPartition partition = job.partitions.get(p);
        require(misses(t, partition) && restarting.size() < decisions, p + " is there");
        failOver(t, new PartitionNotFoundException(job.id(partition)));
    }

    /** Whether a task that reads finds a partition missing; inside a region it waits for a producer at work. */
    private boolean misses(String t, IntermediateResultPartition partition) {
        String producer = job.producer(partition);
        boolean waits = job.regionOf(t).equals(job.regionOf(producer)) && List.of(ACTIVE).contains(job.status(producer));
        boolean reads = job.status(t) == ExecutionState.INITIALIZING || job.status(t) == ExecutionState.RUNNING;
        return reads && !stateOf(partition).equals("STORED") && !waits;
    }

    @Action
    void give_up(String t) {
        requireState(t, ACTIVE);
        boolean misses = job.inputs(t).stream().anyMatch(p -> JobWorld.outlives(p.getResultType()) && misses(t, p));
        require(restarting.size() == decisions && (failures > 0 || misses), "a restart is left, or nothing fails");
        job.report(t, ExecutionState.FAILED, new Exception("seeded"));
        status = "FAILED";
    }

    @Action
    void cancel(String t) {
        requireState(t, ExecutionState.CANCELING);
        job.report(t, ExecutionState.CANCELED, null);
    }

    @Action
    void withdraw(String t) {
        requireState(t, ACTIVE);
        require(unsent || job.status(t) != ExecutionState.SCHEDULED, t + " was not sent");
        require(failures > 0 && coupled(t), "no failure is left, or no peer");
        failures--;
        job.report(t, ExecutionState.CANCELED, null);
    }

    /** Whether a task has a peer that works at the same time: over an exchange that is read while it is written. */
    private boolean coupled(String t) {
        for (IntermediateResultPartition p : job.inputs(t)) {
            if (p.getResultType().canBePipelinedConsumed()) {
                return true;
            }
        }
        return job.tasks.get(t).getProducedPartitions().values().stream().anyMatch(p -> p.getResultType().canBePipelinedConsumed());
    }

    @Action
    void fail_globally(String g) {
        requireRunning();
        require(failures > 0 && restarting.size() < decisions, "no failure is left");
        failures--;
        restart(job.names.keySet());
    }

    @Action
    void restart(int k) {
        requireRunning();
        require(k < restarting.size() && !restarting.get(k).isEmpty(), "decision " + k + " is not pending");
        require(cancelled.get(k).stream().allMatch(CompletableFuture::isDone), "tasks are being cancelled");
        for (ExecutionVertexID id : versioner.getUnmodifiedExecutionVertices(versions.get(k))) {
            job.tasks.get(job.names.get(id)).resetForNewExecution();
        }
        restarting.get(k).clear();
    }

    private void failOver(String t, Exception cause) {
        job.report(t, ExecutionState.FAILED, cause);
        restart(strategy.getTasksNeedingRestart(job.tasks.get(t).getID(), cause));
    }

    /** DefaultScheduler.restartTasksWithDelay. */
    private void restart(Set<ExecutionVertexID> ids) {
        versions.add(new HashSet<>(versioner.recordVertexModifications(ids).values()));
        Set<String> chosen = new TreeSet<>();
        List<CompletableFuture<?>> futures = new ArrayList<>();
        for (ExecutionVertexID id : ids) {
            String name = job.names.get(id);
            chosen.add(name);
            Execution execution = job.execution(name);
            boolean atOnce = execution.getState() == ExecutionState.SCHEDULED || execution.getState() == ExecutionState.CREATED;
            execution.cancel();
            futures.add(execution.getReleaseFuture());
            if (atOnce) {
                happened("cancel", Map.of("t", name));
            }
        }
        restarting.add(chosen);
        cancelled.add(futures);
    }
}
