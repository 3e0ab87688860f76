package streamproof.flinkclasses;

import java.net.InetAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ScheduledExecutorService;
import org.apache.flink.api.common.JobID;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.blob.BlobWriter;
import org.apache.flink.runtime.clusterframework.types.AllocationID;
import org.apache.flink.runtime.clusterframework.types.ResourceID;
import org.apache.flink.runtime.concurrent.ComponentMainThreadExecutor;
import org.apache.flink.runtime.deployment.TaskDeploymentDescriptorFactory.PartitionLocationConstraint;
import org.apache.flink.runtime.execution.ExecutionState;
import org.apache.flink.runtime.executiongraph.DefaultExecutionGraph;
import org.apache.flink.runtime.executiongraph.DefaultExecutionGraphBuilder;
import org.apache.flink.runtime.executiongraph.Execution;
import org.apache.flink.runtime.executiongraph.ExecutionDeploymentListener;
import org.apache.flink.runtime.executiongraph.ExecutionJobVertex;
import org.apache.flink.runtime.executiongraph.ExecutionStateUpdateListener;
import org.apache.flink.runtime.executiongraph.ExecutionVertex;
import org.apache.flink.runtime.executiongraph.IntermediateResult;
import org.apache.flink.runtime.executiongraph.IntermediateResultPartition;
import org.apache.flink.runtime.executiongraph.MarkPartitionFinishedStrategy;
import org.apache.flink.runtime.executiongraph.TaskExecutionStateTransition;
import org.apache.flink.runtime.io.network.partition.JobMasterPartitionTracker;
import org.apache.flink.runtime.io.network.partition.JobMasterPartitionTrackerImpl;
import org.apache.flink.runtime.io.network.partition.PartitionTrackerFactory;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.ResultPartitionType;
import org.apache.flink.runtime.jobgraph.DistributionPattern;
import org.apache.flink.runtime.jobgraph.IntermediateDataSet;
import org.apache.flink.runtime.jobgraph.IntermediateDataSetID;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.jobgraph.JobVertex;
import org.apache.flink.runtime.jobgraph.tasks.AbstractInvokable;
import org.apache.flink.runtime.jobmanager.slots.TaskManagerGateway;
import org.apache.flink.runtime.jobmaster.LogicalSlot;
import org.apache.flink.runtime.metrics.groups.UnregisteredMetricGroups;
import org.apache.flink.runtime.scheduler.InternalFailuresListener;
import org.apache.flink.runtime.scheduler.SchedulerBase;
import org.apache.flink.runtime.scheduler.VertexParallelismStore;
import org.apache.flink.runtime.executiongraph.DefaultVertexAttemptNumberStore;
import org.apache.flink.runtime.scheduler.strategy.ConsumedPartitionGroup;
import org.apache.flink.runtime.scheduler.strategy.ExecutionVertexID;
import org.apache.flink.runtime.scheduler.strategy.SchedulingExecutionVertex;
import org.apache.flink.runtime.scheduler.strategy.SchedulingPipelinedRegion;
import org.apache.flink.runtime.scheduler.strategy.SchedulingTopology;
import org.apache.flink.runtime.shuffle.NettyShuffleDescriptor;
import org.apache.flink.runtime.shuffle.PartitionDescriptor;
import org.apache.flink.runtime.shuffle.ProducerDescriptor;
import org.apache.flink.runtime.shuffle.ShuffleDescriptor;
import org.apache.flink.runtime.shuffle.ShuffleMaster;
import org.apache.flink.runtime.taskexecutor.TaskExecutorGateway;
import org.apache.flink.runtime.taskmanager.TaskExecutionState;
import org.apache.flink.runtime.taskmanager.TaskManagerLocation;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.slf4j.LoggerFactory;

/** A job of Flink with the names of the model: the ExecutionGraph, its SchedulingTopology and its JobMasterPartitionTracker. */
final class JobWorld {
    final DefaultExecutionGraph graph;
    final SchedulingTopology topology;
    final JobMasterPartitionTracker tracker;
    /** Task name to its vertex, in the order of the model. */
    final Map<String, ExecutionVertex> tasks = new LinkedHashMap<>();
    final Map<ExecutionVertexID, String> names = new HashMap<>();
    /** Region name to its tasks. */
    final Map<String, List<String>> regions = new LinkedHashMap<>();
    final Map<String, IntermediateResult> datasets = new LinkedHashMap<>();
    /** Name of a partition that can be read again to the partition. */
    final Map<String, IntermediateResultPartition> partitions = new LinkedHashMap<>();
    /** Partitions that the TaskExecutor was told to release. */
    final Set<ResultPartitionID> released = new HashSet<>();

    /** The TaskExecutor that deployed tasks talk to; null: their slots have none. */
    TaskManagerGateway gateway;

    private final TaskManagerLocation location =
            new TaskManagerLocation(ResourceID.generate(), InetAddress.getLoopbackAddress(), 1);

    /** Expands a job graph in the form of the parameter `topology`: JSON with `vertices` and `edges`. */
    JobWorld(String text) throws Exception {
        if (!text.startsWith("{")) {
            throw new IllegalArgumentException("give the topology as JSON, not by name: " + text);
        }
        JsonNode json = new ObjectMapper().readTree(text);
        JobGraph job = new JobGraph(new JobID(), "streamproof");
        Map<String, JobVertex> vertices = new LinkedHashMap<>();
        for (JsonNode v : json.get("vertices")) {
            JobVertex vertex = new JobVertex(v.get(0).asText());
            vertex.setParallelism(v.get(1).asInt());
            vertex.setInvokableClass(AbstractInvokable.class);
            vertices.put(v.get(0).asText(), vertex);
            job.addVertex(vertex);
        }
        Map<String, IntermediateDataSetID> ids = new LinkedHashMap<>();
        for (JsonNode e : json.get("edges")) {
            IntermediateDataSetID id = ids.computeIfAbsent(e.get(4).asText(), k -> new IntermediateDataSetID());
            Reflect.call(vertices.get(e.get(1).asText()), "connectNewDataSetAsInput", vertices.get(e.get(0).asText()),
                    DistributionPattern.valueOf(e.get(2).asText()), ResultPartitionType.valueOf(e.get(3).asText()), id, false);
        }
        for (JobVertex vertex : vertices.values()) {
            for (IntermediateDataSet dataset : vertex.getProducedDataSets()) {
                for (int i = 0; i < dataset.getConsumers().size(); i++) {
                    // Flink 2.0 and later: as StreamingJobGraphGenerator does; without it nothing is released
                    Reflect.callIfAny(dataset, "increaseNumJobEdgesToCreate");
                }
            }
        }
        ShuffleMaster<?> shuffle = Reflect.stub(ShuffleMaster.class, Map.of("registerPartitionWithProducer", args ->
                CompletableFuture.<ShuffleDescriptor>completedFuture(new NettyShuffleDescriptor(location.getResourceID(),
                        NettyShuffleDescriptor.LocalExecutionPartitionConnectionInfo.INSTANCE,
                        new ResultPartitionID(((PartitionDescriptor) args[1]).getPartitionId(),
                                ((ProducerDescriptor) args[2]).getProducerExecutionId())))));
        TaskExecutorGateway gateway = Reflect.stub(TaskExecutorGateway.class, Map.of("releasePartitions", args -> {
            for (Object id : (Set<?>) args[1]) {
                released.add((ResultPartitionID) id);
            }
            return null;
        }));
        tracker = Fault.wrap(JobMasterPartitionTracker.class, Reflect.make(JobMasterPartitionTrackerImpl.class, job.getJobID(), shuffle,
                Reflect.stub(PartitionTrackerFactory.TaskExecutorGatewayLookup.class,
                        Map.of("lookup", args -> java.util.Optional.of(gateway)))));
        ComponentMainThreadExecutor mainThread = mainThread();
        VertexParallelismStore parallelism = (VertexParallelismStore)
                Reflect.invoke(SchedulerBase.class, "computeVertexParallelismStore", (Object) job.getVertices());
        graph = (DefaultExecutionGraph) Reflect.invoke(DefaultExecutionGraphBuilder.class, "buildGraph", job, new Configuration(),
                Reflect.stub(ScheduledExecutorService.class, Map.of()), (Executor) Runnable::run, getClass().getClassLoader(),
                Reflect.stub(BlobWriter.class, Map.of("getMinOffloadingSize", args -> Integer.MAX_VALUE)),
                LoggerFactory.getLogger("job"), shuffle, tracker, PartitionLocationConstraint.CAN_BE_UNKNOWN,
                Reflect.stub(ExecutionDeploymentListener.class, Map.of()), (ExecutionStateUpdateListener) (a, b, c) -> {},
                new DefaultVertexAttemptNumberStore(), parallelism, new ExecutionJobVertex.Factory(),
                (MarkPartitionFinishedStrategy) ResultPartitionType::isBlockingOrBlockingPersistentResultPartition,
                UnregisteredMetricGroups.createUnregisteredJobManagerJobMetricGroup());
        graph.start(mainThread);
        graph.setInternalTaskFailuresListener(Reflect.stub(InternalFailuresListener.class, Map.of("onGlobalFailure", args -> {
            throw new IllegalStateException("the ExecutionGraph fails globally", (Throwable) args[0]);
        })));
        graph.transitionToRunning();
        topology = graph.getSchedulingTopology();
        for (JobVertex vertex : vertices.values()) {
            for (ExecutionVertex task : graph.getJobVertex(vertex.getID()).getTaskVertices()) {
                String name = vertex.getName() + " (" + (task.getParallelSubtaskIndex() + 1) + "/" + vertex.getParallelism() + ")";
                tasks.put(name, task);
                names.put(task.getID(), name);
            }
        }
        nameRegions();
        ids.forEach((name, id) -> datasets.put(name, graph.getAllIntermediateResults().get(id)));
        for (Map.Entry<String, IntermediateResult> entry : datasets.entrySet()) {
            IntermediateResultPartition[] parts = entry.getValue().getPartitions();
            for (int i = 0; i < parts.length; i++) {
                if (outlives(parts[i].getResultType())) {
                    partitions.put(entry.getKey() + (parts.length > 1 ? "#" + i : ""), parts[i]);
                }
            }
        }
    }

    /** An executor that runs everything at once, in the thread of the caller. */
    static ComponentMainThreadExecutor mainThread() {
        return Reflect.stub(ComponentMainThreadExecutor.class, Map.of("execute", args -> {
            ((Runnable) args[0]).run();
            return null;
        }));
    }

    private void nameRegions() {
        List<String> order = new ArrayList<>(tasks.keySet());
        Map<Integer, List<String>> byFirst = new TreeMap<>();
        for (SchedulingPipelinedRegion region : topology.getAllPipelinedRegions()) {
            TreeSet<Integer> numbers = new TreeSet<>();
            for (SchedulingExecutionVertex vertex : region.getVertices()) {
                numbers.add(order.indexOf(names.get(vertex.getId())));
            }
            List<String> members = new ArrayList<>();
            numbers.forEach(n -> members.add(order.get(n)));
            byFirst.put(numbers.first(), members);
        }
        for (List<String> members : byFirst.values()) {
            String name = members.size() < 3 ? String.join("+", members) : members.get(0) + "+" + (members.size() - 1) + " more";
            regions.put(regions.containsKey(name) ? name + " #" + regions.size() : name, members);
        }
    }

    /** Whether partitions of the type outlive their producers. */
    static boolean outlives(ResultPartitionType type) {
        return !type.mustBePipelinedConsumed();
    }

    String regionOf(String task) {
        for (Map.Entry<String, List<String>> region : regions.entrySet()) {
            if (region.getValue().contains(task)) {
                return region.getKey();
            }
        }
        throw new IllegalArgumentException("no task " + task);
    }

    Execution execution(String task) {
        Family.require(tasks.containsKey(task), "no task " + task);
        return tasks.get(task).getCurrentExecutionAttempt();
    }

    ExecutionState status(String task) {
        return execution(task).getState();
    }

    /** The partitions that a task reads, in their order. */
    List<IntermediateResultPartition> inputs(String task) {
        List<IntermediateResultPartition> found = new ArrayList<>();
        for (ConsumedPartitionGroup group : tasks.get(task).getAllConsumedPartitionGroups()) {
            group.forEach(id -> found.add(graph.getResultPartitionOrThrow(id)));
        }
        return found;
    }

    String producer(IntermediateResultPartition partition) {
        return names.get(partition.getProducer().getID());
    }

    /** The id of the partition of the producer's present attempt. */
    ResultPartitionID id(IntermediateResultPartition partition) {
        return new ResultPartitionID(partition.getPartitionId(),
                partition.getProducer().getCurrentExecutionAttempt().getAttemptId());
    }

    void deploy(String task) {
        if (gateway != null) {
            LogicalSlot slot = Reflect.stub(LogicalSlot.class, Map.of("tryAssignPayload", args -> true, "isAlive", args -> true,
                    "getTaskManagerGateway", args -> gateway, "getTaskManagerLocation", args -> location,
                    "getAllocationId", args -> new AllocationID()));
            execution(task).tryAssignResource(slot);
        }
        execution(task).registerProducedPartitions(location).join();
        execution(task).transitionState(ExecutionState.DEPLOYING);
    }

    /** The TaskExecutor reports a state of a task. */
    void report(String task, ExecutionState state, Throwable cause) {
        TaskExecutionState report = new TaskExecutionState(execution(task).getAttemptId(), state, cause);
        graph.updateState(new TaskExecutionStateTransition(report));
    }

    /** The state of every task. */
    Map<String, Object> statuses() {
        Map<String, Object> found = new LinkedHashMap<>();
        tasks.forEach((name, task) -> found.put(name, task.getExecutionState().name()));
        return found;
    }
}
