package streamproof.flinkclasses;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Deque;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.apache.flink.api.common.JobID;
import org.apache.flink.runtime.clusterframework.types.ResourceID;
import org.apache.flink.runtime.deployment.ResultPartitionDeploymentDescriptor;
import org.apache.flink.runtime.executiongraph.ExecutionAttemptID;
import org.apache.flink.runtime.io.network.partition.JobMasterPartitionTracker;
import org.apache.flink.runtime.io.network.partition.JobMasterPartitionTrackerImpl;
import org.apache.flink.runtime.io.network.partition.PartitionTrackerFactory;
import org.apache.flink.runtime.io.network.partition.ResourceManagerPartitionTracker;
import org.apache.flink.runtime.io.network.partition.ResourceManagerPartitionTrackerImpl;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.ResultPartitionType;
import org.apache.flink.runtime.io.network.partition.TaskExecutorClusterPartitionReleaser;
import org.apache.flink.runtime.io.network.partition.TaskExecutorPartitionInfo;
import org.apache.flink.runtime.io.network.partition.TaskExecutorPartitionTracker;
import org.apache.flink.runtime.io.network.partition.TaskExecutorPartitionTrackerImpl;
import org.apache.flink.runtime.jobgraph.IntermediateDataSetID;
import org.apache.flink.runtime.jobgraph.IntermediateResultPartitionID;
import org.apache.flink.runtime.messages.Acknowledge;
import org.apache.flink.runtime.shuffle.NettyShuffleDescriptor;
import org.apache.flink.runtime.shuffle.PartitionDescriptor;
import org.apache.flink.runtime.shuffle.ShuffleEnvironment;
import org.apache.flink.runtime.shuffle.ShuffleMaster;
import org.apache.flink.runtime.taskexecutor.TaskExecutorGateway;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/**
 * The model `partition_lifecycle`, and its variant `persistent`: JobMasterPartitionTrackerImpl of each job,
 * TaskExecutorPartitionTrackerImpl of each TaskExecutor, ResourceManagerPartitionTrackerImpl.
 *
 * <p>The adapter has the messages, the connections, the producers and the consumers: what `JobMaster`, `TaskExecutor` and
 * `ResourceManager` do around their trackers. A TaskExecutor's ShuffleEnvironment is a set of partitions, from which its tracker
 * deletes them. Every attempt of a partition is a dataset of its own with one partition.
 */
final class PartitionFamily extends Family {
    /** An attempt of a partition. */
    private final class Copy {
        final int p;
        final int a;
        final ResultPartitionDeploymentDescriptor descriptor;
        int place;
        /** It is being produced; what its copy is when it is not stored; why the JobMaster does not track it. */
        boolean isProducing;
        String gone = "NONE";

        Copy(int p, int a) {
            this.p = p;
            this.a = a;
            IntermediateDataSetID dataSet = new IntermediateDataSetID();
            IntermediateResultPartitionID id = new IntermediateResultPartitionID(dataSet, 0);
            NettyShuffleDescriptor where = new NettyShuffleDescriptor(new ResourceID("tm"),
                    NettyShuffleDescriptor.LocalExecutionPartitionConnectionInfo.INSTANCE,
                    new ResultPartitionID(id, ExecutionAttemptID.randomId()));
            ResultPartitionType type = isPersistent ? ResultPartitionType.BLOCKING_PERSISTENT : ResultPartitionType.BLOCKING;
            descriptor = new ResultPartitionDeploymentDescriptor(
                    new PartitionDescriptor(dataSet, 1, id, type, 1, 0, false, false, false), where, 1);
        }

        ResultPartitionID id() {
            return descriptor.getShuffleDescriptor().getResultPartitionID();
        }
    }

    /** A message to a TaskExecutor: it produces, releases or promotes a copy; without a copy it closes the connection. */
    private static final class Order {
        final String kind;
        final Copy copy;

        Order(String kind, Copy copy) {
            this.kind = kind;
            this.copy = copy;
        }
    }

    private boolean isPersistent;
    private int jobs;
    private int executors;
    private int failuresLeft;
    private JobID[] jobIds;
    private ResourceID[] resources;
    private JobMasterPartitionTracker[] masters;
    private TaskExecutorPartitionTracker[] trackers;
    private ResourceManagerPartitionTracker manager;
    private final List<Set<ResultPartitionID>> stored = new ArrayList<>();
    private Copy[][] copies;
    private String[] master;
    private String[] executor;
    private int[] recoveries;
    private int[] attempt;
    private String[] tracked;
    private String[][] consumer;
    private boolean[][] registered;
    private boolean[][] connected;
    private boolean[] empty;
    private boolean[] managed;
    private final Map<List<Integer>, Deque<Order>> toExecutor = new LinkedHashMap<>();
    private final Map<List<Integer>, Copy> toMaster = new LinkedHashMap<>();
    /** Copies that were promoted and whose promotion was not answered: the tracker has stopped to track them. */
    private final Set<Copy> promoting = new HashSet<>();
    /** What a copy is after the tracker deletes it. */
    private String how = "DELETED";

    @Override
    void reset(JsonNode parameters, String variant) {
        isPersistent = "persistent".equals(variant) || parameters.path("persistent").asBoolean(false);
        jobs = parameters.get("jobs").asInt();
        executors = parameters.get("executors").asInt();
        failuresLeft = parameters.get("failures").asInt();
        int partitions = parameters.get("partitions").asInt();
        copies = new Copy[partitions][parameters.get("attempts").asInt()];
        attempt = new int[partitions];
        tracked = filled(partitions, "NONE");
        consumer = new String[partitions][];
        for (int p = 0; p < partitions; p++) {
            consumer[p] = filled(parameters.get("consumers").asInt(), "CREATED");
            for (int a = 0; a < copies[p].length; a++) {
                copies[p][a] = new Copy(p, a);
            }
        }
        master = filled(jobs, "RUNNING");
        executor = filled(executors, "UP");
        recoveries = new int[jobs];
        Arrays.fill(recoveries, parameters.get("crashes").asInt());
        registered = new boolean[jobs][executors];
        connected = new boolean[jobs][executors];
        empty = new boolean[executors];
        managed = new boolean[executors];
        Arrays.fill(managed, true);
        jobIds = new JobID[jobs];
        masters = new JobMasterPartitionTracker[jobs];
        for (int j = 0; j < jobs; j++) {
            jobIds[j] = new JobID();
            masters[j] = newMaster(j);
            for (int e = 0; e < executors; e++) {
                toExecutor.put(List.of(j, e), new ArrayDeque<>());
            }
        }
        resources = new ResourceID[executors];
        trackers = new TaskExecutorPartitionTracker[executors];
        for (int e = 0; e < executors; e++) {
            resources[e] = new ResourceID("tm-" + e);
            stored.add(new HashSet<>());
            trackers[e] = newTracker(e);
        }
        manager = newManager();
    }

    private static String[] filled(int length, String value) {
        String[] found = new String[length];
        Arrays.fill(found, value);
        return found;
    }

    private JobMasterPartitionTracker newMaster(int j) {
        ShuffleMaster<?> shuffle = Reflect.stub(ShuffleMaster.class, Map.of());
        PartitionTrackerFactory.TaskExecutorGatewayLookup lookup = Reflect.stub(
                PartitionTrackerFactory.TaskExecutorGatewayLookup.class,
                Map.of("lookup", args -> Optional.of(gateway(j, numberOf((ResourceID) args[0])))));
        return Fault.wrap(JobMasterPartitionTracker.class,
                Reflect.make(JobMasterPartitionTrackerImpl.class, jobIds[j], shuffle, lookup));
    }

    private int numberOf(ResourceID resource) {
        return Arrays.asList(resources).indexOf(resource);
    }

    /** What the JobMaster sends to a TaskExecutor. */
    private TaskExecutorGateway gateway(int j, int e) {
        return Reflect.stub(TaskExecutorGateway.class, Map.of(
                "releasePartitions", args -> {
                    send(j, e, "Release", (Collection<?>) args[1]);
                    return null;
                },
                "promotePartitions", args -> {
                    send(j, e, "Promote", (Collection<?>) args[1]);
                    return new CompletableFuture<Acknowledge>();
                }));
    }

    private void send(int j, int e, String kind, Collection<?> ids) {
        for (Object id : ids) {
            toExecutor.get(List.of(j, e)).add(new Order(kind, copyOf((ResultPartitionID) id)));
        }
    }

    private Copy copyOf(ResultPartitionID id) {
        for (Copy[] own : copies) {
            for (Copy copy : own) {
                if (copy.id().equals(id)) {
                    return copy;
                }
            }
        }
        throw new IllegalArgumentException("no such partition: " + id);
    }

    private TaskExecutorPartitionTracker newTracker(int e) {
        ShuffleEnvironment<?, ?> shuffle = Reflect.stub(ShuffleEnvironment.class, Map.of("releasePartitionsLocally", args -> {
            for (Object id : (Collection<?>) args[0]) {
                if (stored.get(e).remove(id)) {
                    copyOf((ResultPartitionID) id).gone = how;
                    copyOf((ResultPartitionID) id).isProducing = false;
                }
            }
            return null;
        }));
        return Fault.wrap(TaskExecutorPartitionTracker.class, new TaskExecutorPartitionTrackerImpl(shuffle));
    }

    private ResourceManagerPartitionTracker newManager() {
        TaskExecutorClusterPartitionReleaser releaser = Reflect.stub(TaskExecutorClusterPartitionReleaser.class,
                Map.of("releaseClusterPartitions", args -> {
                    Set<IntermediateDataSetID> sets = new HashSet<>();
                    ((Collection<?>) args[1]).forEach(set -> sets.add((IntermediateDataSetID) set));
                    try {
                        trackers[numberOf((ResourceID) args[0])].stopTrackingAndReleaseClusterPartitions(sets);
                    } catch (NullPointerException e) {
                        System.err.println("TaskExecutor.releaseClusterPartitions fails: " + e); // its caller only logs that
                    }
                    return null;
                }));
        return Fault.wrap(ResourceManagerPartitionTracker.class, new ResourceManagerPartitionTrackerImpl(releaser));
    }

    // --- what is compared: what the trackers and the ShuffleEnvironments have

    @Override
    Map<String, Object> state() {
        List<Object> known = new ArrayList<>();
        Map<String, Object> copy = new LinkedHashMap<>();
        Map<String, Object> inManager = new LinkedHashMap<>();
        for (int p = 0; p < copies.length; p++) {
            known.add(trackedState(p));
            for (Copy one : copies[p]) {
                String key = "(" + p + ", " + one.a + ")";
                copy.put(key, copyState(one));
                inManager.put(key, isKnown(one));
            }
        }
        Map<String, Object> found = new LinkedHashMap<>(Map.of("tracked", known, "copy", copy));
        if (isPersistent) {
            found.put("known", inManager);
        }
        return found;
    }

    private int jobOf(int p) {
        return p % jobs;
    }

    private Copy newest(int p) {
        return copies[p][Math.max(0, attempt[p] - 1)];
    }

    /** The JobMaster's tracker says whether it tracks the newest attempt; its Execution whether that has finished. */
    private String trackedState(int p) {
        boolean expected = List.of("PRODUCING", "STORED").contains(tracked[p]) && !promoting.contains(newest(p));
        boolean is = attempt[p] > 0 && masters[jobOf(p)].isPartitionTracked(newest(p).id());
        return is == expected ? tracked[p] : is ? "STORED" : "NONE";
    }

    private String copyState(Copy copy) {
        if (!stored.get(copy.place).contains(copy.id())) {
            return copy.gone;
        }
        return copy.isProducing ? "PRODUCING" : isOfCluster(copy) ? "CLUSTER" : "STORED";
    }

    private boolean isOfCluster(Copy copy) {
        return trackers[copy.place].createClusterPartitionReport().getEntries().stream()
                .anyMatch(entry -> entry.getHostedPartitions().contains(copy.id()));
    }

    private boolean isKnown(Copy copy) {
        return !manager.getClusterPartitionShuffleDescriptors(dataSet(copy)).isEmpty();
    }

    private static IntermediateDataSetID dataSet(Copy copy) {
        return copy.descriptor.getResultId();
    }

    private boolean isTracked(Copy copy) {
        return attempt[copy.p] == copy.a + 1 && List.of("PRODUCING", "STORED").contains(tracked[copy.p]);
    }

    private boolean isConsumed(int p) {
        return List.of(consumer[p]).stream().allMatch("FINISHED"::equals);
    }

    // --- the JobMaster

    @Action
    void deploy(int p, int e) {
        int j = jobOf(p);
        require(master[j].equals("RUNNING") && registered[j][e], "there is no connection");
        require(List.of("NONE", "GONE").contains(tracked[p]) && attempt[p] < copies[p].length && !isConsumed(p), "not needed");
        require(toExecutor.get(List.of(j, e)).size() < 2, "the model has two messages of a connection at a time");
        Copy copy = copies[p][attempt[p]];
        copy.place = e;
        masters[j].startTrackingPartition(resources[e], copy.descriptor);
        toExecutor.get(List.of(j, e)).add(new Order("Deploy", copy));
        attempt[p]++;
        tracked[p] = "PRODUCING";
        empty[e] = false;
    }

    @Action
    void receive_report(int j, int e) {
        Copy copy = toMaster.get(List.of(j, e));
        require(copy != null && master[j].equals("RUNNING"), "no report, or no JobMaster");
        toMaster.remove(List.of(j, e));
        boolean isPromotion = isPersistent && attempt[copy.p] == copy.a + 1 && tracked[copy.p].equals("STORED")
                && isConsumed(copy.p) && registered[j][e];
        if (registered[j][e] && attempt[copy.p] == copy.a + 1 && tracked[copy.p].equals("PRODUCING")) {
            tracked[copy.p] = "STORED";
        }
        if (isPromotion) {
            promoting.remove(copy);
            tracked[copy.p] = "PROMOTED";
        }
    }

    @Action
    void release(int p, int a) {
        require(!isPersistent, "the variant has no release");
        handOver(p, a);
        masters[jobOf(p)].stopTrackingAndReleasePartitions(List.of(copies[p][a].id()));
        tracked[p] = "RELEASED";
    }

    private void handOver(int p, int a) {
        int j = jobOf(p);
        require(master[j].equals("RUNNING") && isConsumed(p), "a consumer has not finished");
        require(attempt[p] == a + 1 && tracked[p].equals("STORED"), "not stored");
        require(toExecutor.get(List.of(j, copies[p][a].place)).size() < 2, "the model has two messages of a connection at a time");
    }

    @Action
    void promote(int p, int a) {
        require(isPersistent, "no partition is persistent");
        handOver(p, a);
        if (!promoting.add(copies[p][a])) {
            throw new Unsupported("JobMasterPartitionTrackerImpl stops to track with the first promotion: there is no second one");
        }
        masters[jobOf(p)].stopTrackingAndPromotePartitions(List.of(copies[p][a].id()));
    }

    @Action
    void close(int j, int e) {
        require(master[j].equals("RUNNING") && registered[j][e], "there is no connection");
        require(!hasResources(j, e), "there are slots or partitions");
        require(toExecutor.get(List.of(j, e)).size() < 2, "the model has two messages of a connection at a time");
        toExecutor.get(List.of(j, e)).add(new Order("Close", null));
        registered[j][e] = false;
    }

    private boolean hasResources(int j, int e) {
        boolean isWaiting = promoting.stream().anyMatch(copy -> jobOf(copy.p) == j && copy.place == e);
        return isWaiting || masters[j].isTrackingPartitionsFor(resources[e]);
    }

    @Action
    void lose_executor(int j, int e) {
        require(master[j].equals("RUNNING") && registered[j][e], "there is no connection");
        forget(j, e);
        registered[j][e] = false;
    }

    /** `JobMaster.disconnectTaskManager`. */
    private void forget(int j, int e) {
        masters[j].stopTrackingPartitionsFor(resources[e]);
        for (Copy[] own : copies) {
            for (Copy copy : own) {
                if (jobOf(copy.p) == j && copy.place == e && isTracked(copy)) {
                    tracked[copy.p] = tracked[copy.p].equals("STORED") ? "GONE" : "NONE";
                    promoting.remove(copy);
                    restart(copy.p, "READING");
                }
            }
        }
    }

    private void restart(int p, String... states) {
        for (int c = 0; c < consumer[p].length; c++) {
            if (List.of(states).contains(consumer[p][c])) {
                consumer[p][c] = "CREATED";
            }
        }
    }

    @Action
    void end(int j) {
        require(master[j].equals("RUNNING"), "no JobMaster");
        boolean isDone = isPersistent;
        for (int p = j; p < copies.length; p += jobs) {
            isDone &= tracked[p].equals("PROMOTED");
        }
        stop(j, "ENDED");
        for (int p = j; p < copies.length && isDone; p += jobs) {
            tracked[p] = "PROMOTED";
        }
    }

    private void stop(int j, String state) {
        master[j] = state;
        masters[j] = newMaster(j);
        for (int e = 0; e < executors; e++) {
            Deque<Order> orders = toExecutor.get(List.of(j, e));
            if (state.equals("ENDED") && registered[j][e] && orders.size() < 2) {
                orders.add(new Order("Close", null));
            }
            registered[j][e] = false;
        }
        for (int p = j; p < copies.length; p += jobs) {
            promoting.remove(newest(p));
            tracked[p] = "NONE";
            restart(p, "READING", "FINISHED");
        }
    }

    @Action
    void crash(int j) {
        require(master[j].equals("RUNNING"), "no JobMaster");
        stop(j, "CRASHED");
    }

    @Action
    void recover(int j) {
        require(master[j].equals("CRASHED") && recoveries[j] > 0, "no JobMaster comes back");
        recoveries[j]--;
        master[j] = "RUNNING";
    }

    // --- consumers

    @Action
    void begin(int p, int c) {
        require(master[jobOf(p)].equals("RUNNING") && consumer[p][c].equals("CREATED"), "it has begun");
        require(tracked[p].equals("STORED"), "not stored");
        consumer[p][c] = "READING";
    }

    @Action
    void consume(int p, int c, int a) {
        require(consumer[p][c].equals("READING") && attempt[p] == a + 1, "it does not read");
        require(copyState(copies[p][a]).equals("STORED"), "it is not there");
        consumer[p][c] = "FINISHED";
    }

    @Action
    void miss(int p, int c, int a) {
        require(consumer[p][c].equals("READING") && attempt[p] == a + 1, "it does not read");
        require(List.of("DELETED", "LOST").contains(copyState(copies[p][a])), "it is there");
        masters[jobOf(p)].stopTrackingPartitions(List.of(copies[p][a].id()));
        promoting.remove(copies[p][a]);
        tracked[p] = "NONE";
        restart(p, "READING");
    }

    @Action
    void fail(int p, int c) {
        require(master[jobOf(p)].equals("RUNNING") && !consumer[p][c].equals("CREATED") && failuresLeft > 0, "no failure");
        failuresLeft--;
        consumer[p][c] = "CREATED";
        if (tracked[p].equals("RELEASED")) {
            tracked[p] = "NONE";
        }
    }

    // --- the TaskExecutor

    @Action
    void register(int j, int e) {
        require(executor[e].equals("UP") && !connected[j][e] && master[j].equals("RUNNING"), "no registration");
        forget(j, e);
        registered[j][e] = true;
        connected[j][e] = true;
        toExecutor.get(List.of(j, e)).clear();
    }

    @Action
    void receive_order(int j, int e) {
        Deque<Order> orders = toExecutor.get(List.of(j, e));
        require(!orders.isEmpty() && executor[e].equals("UP"), "no message");
        boolean waits = orders.peek().kind.equals("Promote") && connected[j][e] && toMaster.containsKey(List.of(j, e));
        require(!waits, "the model has one report of a connection at a time");
        Order order = orders.poll();
        if (connected[j][e]) {
            execute(j, e, order.kind, order.copy);
        }
    }

    private void execute(int j, int e, String kind, Copy copy) {
        how = "DELETED";
        switch (kind) {
            case "Deploy": // TaskExecutor.setupResultPartitionBookkeeping
                trackers[e].startTrackingPartition(jobIds[j], TaskExecutorPartitionInfo.from(copy.descriptor));
                stored.get(e).add(copy.id());
                copy.isProducing = true;
                break;
            case "Release":
                trackers[e].stopTrackingAndReleaseJobPartitions(Set.of(copy.id()));
                break;
            case "Promote":
                trackers[e].promoteJobPartitions(Set.of(copy.id()));
                if (copyState(copy).equals("CLUSTER")) {
                    toMaster.put(List.of(j, e), copy);
                }
                break;
            default:
                trackers[e].stopTrackingAndReleaseJobPartitionsFor(jobIds[j]);
                connected[j][e] = false;
        }
    }

    @Action
    void finish(int p, int a) {
        Copy copy = copies[p][a];
        List<Integer> link = List.of(jobOf(p), copy.place);
        require(copyState(copy).equals("PRODUCING") && !toMaster.containsKey(link), "no producer, or a report is on its way");
        copy.isProducing = false;
        toMaster.put(link, copy);
    }

    @Action
    void lose_master(int j, int e) {
        require(connected[j][e], "there is no connection");
        how = "LOST";
        trackers[e].stopTrackingAndReleaseJobPartitionsFor(jobIds[j]);
        connected[j][e] = false;
    }

    /** Flink has no such message: the list of the model is the JobMaster's, and the tracker deletes the others. */
    @Action
    void synchronise(int j, int e) {
        require(registered[j][e] && connected[j][e] && toExecutor.get(List.of(j, e)).isEmpty(), "no heartbeat");
        Set<ResultPartitionID> untracked = new HashSet<>();
        for (TaskExecutorPartitionInfo info : trackers[e].getTrackedPartitionsFor(jobIds[j])) {
            if (!isTracked(copyOf(info.getResultPartitionId()))) {
                untracked.add(info.getResultPartitionId());
            }
        }
        how = "DELETED";
        trackers[e].stopTrackingAndReleaseJobPartitions(untracked);
    }

    @Action
    void crash_executor(int e) {
        stopExecutor(e, "CRASHED");
    }

    @Action
    void fill_disk(int e) {
        require(!ofJobs(e, "PRODUCING", "STORED").isEmpty(), "nothing is on disk");
        stopExecutor(e, "CRASHED");
    }

    private List<Copy> ofJobs(int e, String... states) {
        List<Copy> found = new ArrayList<>();
        for (Copy[] own : copies) {
            for (Copy copy : own) {
                if (copy.place == e && List.of(states).contains(copyState(copy))) {
                    found.add(copy);
                }
            }
        }
        return found;
    }

    /** The process is gone with its tracker; the ResourceManager notices. */
    private void stopExecutor(int e, String state) {
        require(executor[e].equals("UP"), "there is no TaskExecutor");
        executor[e] = state;
        empty[e] = false;
        for (int j = 0; j < jobs; j++) {
            connected[j][e] = false;
            toMaster.remove(List.of(j, e));
            toExecutor.get(List.of(j, e)).clear();
        }
        List<Copy> clusters = ofJobs(e, "CLUSTER");
        for (Copy copy : ofJobs(e, "PRODUCING", "STORED")) {
            copy.gone = "LOST";
        }
        clusters.forEach(copy -> copy.gone = "NONE");
        stored.get(e).clear();
        trackers[e] = newTracker(e);
        manager.processTaskExecutorShutdown(resources[e]);
    }

    @Action
    void lose_message(int j, int e) {
        Deque<Order> orders = toExecutor.get(List.of(j, e));
        require(!orders.isEmpty(), "no message");
        if (orders.peek().kind.equals("Promote")) {
            throw new Unsupported("a promotion is sent once");
        }
        orders.poll();
    }

    @Action
    void lose_report(int j, int e) {
        Copy copy = toMaster.get(List.of(j, e));
        require(copy != null, "no report");
        toMaster.remove(List.of(j, e));
    }

    // --- the ResourceManager

    @Action
    void report_empty(int e) {
        require(executor[e].equals("UP") && isIdle(e), "a slot is in use");
        require(ofJobs(e, "STORED", "CLUSTER").isEmpty(), "something is stored");
        empty[e] = true;
    }

    private boolean isIdle(int e) {
        boolean isDeployed = false;
        for (int j = 0; j < jobs; j++) {
            isDeployed |= toExecutor.get(List.of(j, e)).stream().anyMatch(order -> order.kind.equals("Deploy"));
        }
        return !isDeployed && ofJobs(e, "PRODUCING").isEmpty();
    }

    @Action
    void release_executor(int e) {
        require(empty[e] && isIdle(e), "it is not known to be empty");
        stopExecutor(e, "RELEASED");
    }

    @Action
    void crash_manager() {
        boolean any = isPersistent;
        for (boolean one : empty) {
            any |= one;
        }
        require(any, "nothing is lost");
        Arrays.fill(empty, false);
        if (isPersistent) {
            Arrays.fill(managed, false);
            manager = newManager();
        }
    }

    @Action
    void report_cluster_partition(int p, int a) {
        Copy copy = copies[p][a];
        require(isPersistent && managed[copy.place] && copyState(copy).equals("CLUSTER"), "nothing to report");
        report(copy.place, copy);
    }

    /** A heartbeat lists all cluster partitions of the TaskExecutor: each that was not known is an action of the model. */
    private void report(int e, Copy asked) {
        List<Copy> fresh = new ArrayList<>(ofJobs(e, "CLUSTER"));
        fresh.removeIf(copy -> copy == asked || isKnown(copy));
        manager.processTaskExecutorClusterPartitionReport(resources[e], trackers[e].createClusterPartitionReport());
        for (Copy copy : fresh) {
            happened("report_cluster_partition", Map.of("p", copy.p, "a", copy.a));
        }
    }

    @Action
    void release_cluster_partition(int p, int a) {
        Copy copy = copies[p][a];
        require(isPersistent && isKnown(copy), "the ResourceManager does not know it");
        how = "NONE";
        manager.releaseClusterPartitions(dataSet(copy));
        report(copy.place, copy); // the model has no time between the deletion and the next heartbeat
    }

    @Action
    void lose_manager(int e) {
        require(isPersistent && executor[e].equals("UP") && !managed[e], "it is registered");
        how = "NONE";
        trackers[e].stopTrackingAndReleaseAllClusterPartitions();
        managed[e] = true;
    }
}
