package streamproof.flinkclasses;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ScheduledFuture;
import java.util.function.BooleanSupplier;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.runtime.checkpoint.CheckpointCoordinator;
import org.apache.flink.runtime.checkpoint.CheckpointException;
import org.apache.flink.runtime.checkpoint.CheckpointFailureManager;
import org.apache.flink.runtime.checkpoint.CheckpointFailureReason;
import org.apache.flink.runtime.checkpoint.CheckpointIDCounter;
import org.apache.flink.runtime.checkpoint.CheckpointPlanCalculator;
import org.apache.flink.runtime.checkpoint.CheckpointPlanCalculatorContext;
import org.apache.flink.runtime.checkpoint.CheckpointStatsTracker;
import org.apache.flink.runtime.checkpoint.CheckpointsCleaner;
import org.apache.flink.runtime.checkpoint.CompletedCheckpoint;
import org.apache.flink.runtime.checkpoint.CompletedCheckpointStore;
import org.apache.flink.runtime.checkpoint.DefaultCheckpointPlanCalculator;
import org.apache.flink.runtime.checkpoint.PendingCheckpoint;
import org.apache.flink.runtime.checkpoint.StandaloneCheckpointIDCounter;
import org.apache.flink.runtime.checkpoint.StandaloneCompletedCheckpointStore;
import org.apache.flink.runtime.execution.ExecutionState;
import org.apache.flink.runtime.executiongraph.ExecutionAttemptID;
import org.apache.flink.runtime.executiongraph.JobStatusListener;
import org.apache.flink.runtime.jobgraph.tasks.CheckpointCoordinatorConfiguration;
import org.apache.flink.runtime.jobmanager.slots.TaskManagerGateway;
import org.apache.flink.runtime.messages.Acknowledge;
import org.apache.flink.runtime.messages.checkpoint.AcknowledgeCheckpoint;
import org.apache.flink.runtime.messages.checkpoint.DeclineCheckpoint;
import org.apache.flink.runtime.state.CheckpointStorage;
import org.apache.flink.runtime.state.storage.JobManagerCheckpointStorage;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.util.concurrent.ScheduledExecutor;

/**
 * The model `checkpoints`: CheckpointCoordinator with PendingCheckpoint, DefaultCheckpointPlanCalculator,
 * CheckpointCoordinatorDeActivator, StandaloneCompletedCheckpointStore and the ExecutionGraph of one vertex. The stages of a
 * trigger wait in one queue until the model takes them; messages to and from tasks, and the order of a restart, are written here.
 */
final class CheckpointFamily extends Family {
    private static final List<String> STAGES = List.of("IDLE", "PLANNING", "PLANNED", "CREATED");

    private final Deque<Runnable> stages = new ArrayDeque<>();
    private final Map<Long, Runnable> cancellers = new HashMap<>();
    private final Set<Long> seen = new HashSet<>();
    private final Set<Long> completed = new HashSet<>();
    private final Map<String, Boolean> triggers = new TreeMap<>();
    private final Map<String, Boolean> notices = new TreeMap<>();
    private final Map<String, String> answers = new TreeMap<>();
    private final Map<String, ExecutionAttemptID> answered = new HashMap<>();
    private JobWorld job;
    private List<String> tasks;
    private CheckpointCoordinator coordinator;
    private CompletedCheckpointStore store;
    private CheckpointIDCounter counter;
    private JobStatusListener listener;
    private boolean failStore;
    private String status;
    private int stage;
    private int ids;
    private int concurrent;
    private int failures;
    private int faults;
    private int attempt;
    private long restored;

    @Override
    void reset(JsonNode parameters, String variant) throws Exception {
        int count = parameters.get("tasks").asInt();
        ids = parameters.get("ids").asInt();
        concurrent = parameters.get("concurrent").asInt();
        failures = parameters.get("failures").asInt();
        faults = parameters.get("faults").asInt();
        job = new JobWorld("{\"vertices\": [[\"T\", " + count + "]], \"edges\": []}");
        job.gateway = Reflect.stub(TaskManagerGateway.class, Map.of(
                "triggerCheckpoint", args -> {
                    message(triggers, args);
                    return CompletableFuture.completedFuture(Acknowledge.get());
                },
                "notifyCheckpointOnComplete", args -> {
                    message(notices, args);
                    return null;
                }));
        tasks = new ArrayList<>(job.tasks.keySet());
        Executor executor = this::execute;
        ScheduledExecutor timer = Reflect.stub(ScheduledExecutor.class, Map.of(
                "execute", args -> {
                    execute((Runnable) args[0]);
                    return null;
                },
                "schedule", args -> {
                    if (args[0].getClass().getSimpleName().equals("CheckpointCanceller")) {
                        long id = ((PendingCheckpoint) Reflect.get(args[0], "pendingCheckpoint")).getCheckpointID();
                        cancellers.put(id, (Runnable) args[0]);
                        seen.add(id);
                    }
                    return Reflect.stub(ScheduledFuture.class, Map.of());
                },
                "scheduleAtFixedRate", args -> Reflect.stub(ScheduledFuture.class, Map.of())));
        CompletedCheckpointStore inside = new StandaloneCompletedCheckpointStore(parameters.get("retained").asInt());
        CompletedCheckpointStore failing = Reflect.around(CompletedCheckpointStore.class, inside, Map.of(
                "addCheckpointAndSubsumeOldestOne", args -> {
                    if (failStore) {
                        throw new java.io.IOException("seeded");
                    }
                    completed.add(((CompletedCheckpoint) args[0]).getCheckpointID());
                    return Reflect.call(inside, "addCheckpointAndSubsumeOldestOne", args);
                }));
        store = Fault.wrap(CompletedCheckpointStore.class, failing);
        counter = Fault.wrap(CheckpointIDCounter.class, new StandaloneCheckpointIDCounter());
        CheckpointPlanCalculator plans = Fault.wrap(CheckpointPlanCalculator.class, new DefaultCheckpointPlanCalculator(
                job.graph.getJobID(), Reflect.stub(CheckpointPlanCalculatorContext.class, Map.of("getMainExecutor", args -> timer)),
                job.graph.getVerticesTopologically(), false));
        CheckpointStatsTracker stats = (CheckpointStatsTracker) (CheckpointStatsTracker.class.isInterface()
                ? Class.forName(CheckpointStatsTracker.class.getPackageName() + ".NoOpCheckpointStatsTracker").getEnumConstants()[0]
                : Reflect.make(CheckpointStatsTracker.class, 1, Reflect.stub(MetricGroup.class, Map.of()), job.graph.getJobID()));
        coordinator = Reflect.make(CheckpointCoordinator.class, job.graph.getJobID(),
                new CheckpointCoordinatorConfiguration.CheckpointCoordinatorConfigurationBuilder().setCheckpointInterval(1000)
                        .setCheckpointTimeout(1000).setMaxConcurrentCheckpoints(concurrent).build(),
                List.of(), counter, store, (CheckpointStorage) new JobManagerCheckpointStorage(), executor,
                new CheckpointsCleaner(), timer, new CheckpointFailureManager(
                        CheckpointFailureManager.UNLIMITED_TOLERABLE_FAILURE_NUMBER,
                        Reflect.stub(CheckpointFailureManager.FailJobCallback.class, Map.of())),
                plans, stats);
        listener = Fault.wrap(JobStatusListener.class, coordinator.createActivatorDeactivator(true));
        for (Map<?, ?> map : List.of(cancellers, triggers, notices, answers, answered)) {
            map.clear();
        }
        seen.clear();
        completed.clear();
        stages.clear();
        stage = 0;
        attempt = 0;
        restored = 0;
        status = "RUNNING";
        tasks.forEach(this::start);
        listener.jobStatusChanges(job.graph.getJobID(), JobStatus.RUNNING, 0);
    }

    /** The stages of a trigger are futures; whatever else is executed, the cleaning of checkpoints, runs at once. */
    private void execute(Runnable runnable) {
        if (runnable.getClass().getName().startsWith(CompletableFuture.class.getName())) {
            stages.add(runnable);
        } else {
            runnable.run();
        }
    }

    /** Runs what waits until something has happened; returns whether it has. */
    private boolean takeUntil(BooleanSupplier happened) {
        while (!stages.isEmpty() && !happened.getAsBoolean()) {
            stages.remove().run();
        }
        return happened.getAsBoolean();
    }

    private void start(String task) {
        job.execution(task).transitionState(ExecutionState.SCHEDULED);
        job.deploy(task);
        job.report(task, ExecutionState.INITIALIZING, null);
        job.report(task, ExecutionState.RUNNING, null);
    }

    /** The last id. */
    private long current() {
        return counter.get() - 1;
    }

    private static String key(long c, int t) {
        return "(" + c + ", " + t + ")";
    }

    /** A message to a task reaches the attempt to which it was sent. */
    private void message(Map<String, Boolean> messages, Object[] args) {
        for (int t = 0; t < tasks.size(); t++) {
            if (job.execution(tasks.get(t)).getAttemptId().equals(args[0])) {
                messages.put(key((Long) args[2], t), true);
            }
        }
    }

    private boolean runs(int t) {
        return job.status(tasks.get(t)) == ExecutionState.RUNNING;
    }

    @Override
    Map<String, Object> state() throws Exception {
        Map<String, Object> checkpoints = new LinkedHashMap<>();
        Map<String, Object> stored = new LinkedHashMap<>();
        Map<String, Object> acknowledged = new LinkedHashMap<>();
        Map<String, Object> sent = new LinkedHashMap<>();
        Map<String, Object> noticed = new LinkedHashMap<>();
        Map<String, Object> waiting = new LinkedHashMap<>();
        for (long c = 1; c <= ids; c++) {
            PendingCheckpoint pending = coordinator.getPendingCheckpoints().get(c);
            checkpoints.put("" + c, pending != null ? "PENDING" : completed.contains(c) ? "COMPLETED" : seen.contains(c) ? "ABORTED" : "NONE");
            stored.put("" + c, false);
            for (int t = 0; t < tasks.size(); t++) {
                if (pending != null) {
                    Map<?, ?> missing = (Map<?, ?>) Reflect.get(pending, "notYetAcknowledgedTasks");
                    acknowledged.put(key(c, t), !missing.containsValue(job.tasks.get(tasks.get(t))));
                }
                sent.put(key(c, t), triggers.getOrDefault(key(c, t), false));
                noticed.put(key(c, t), notices.getOrDefault(key(c, t), false));
                waiting.put(key(c, t), answers.getOrDefault(key(c, t), "NONE"));
            }
        }
        store.getAllCheckpoints().forEach(c -> stored.put("" + c.getCheckpointID(), true));
        List<Object> running = new ArrayList<>();
        for (int t = 0; t < tasks.size(); t++) {
            running.add(runs(t));
        }
        Map<String, Object> found = new LinkedHashMap<>(Map.of("job", status, "attempt", attempt, "running", running,
                "failures_left", failures, "faults_left", faults, "last_id", current(), "checkpoint", checkpoints,
                "store", stored, "restored", restored, "triggers", sent));
        found.putAll(Map.of("notices", noticed, "answer", waiting, "acknowledged", acknowledged,
                "stage", coordinator.isTriggering() == (stage > 0) ? STAGES.get(stage) : "isTriggering is " + (stage == 0)));
        return found;
    }

    private void spendFault() {
        require(faults > 0, "no fault is left");
        faults--;
    }

    // --- the tasks

    @Action
    void take_snapshot(int c, int t, String branch) {
        require(triggers.getOrDefault(key(c, t), false) && runs(t), "no message");
        if (branch.equals("decline")) {
            spendFault();
        }
        triggers.remove(key(c, t));
        answers.put(key(c, t), branch.equals("decline") ? "DECLINE" : "ACKNOWLEDGE");
        answered.put(key(c, t), job.execution(tasks.get(t)).getAttemptId());
    }

    @Action
    void publish(int c, int t) {
        require(notices.getOrDefault(key(c, t), false) && runs(t), "no message");
        notices.remove(key(c, t));
    }

    @Action
    void run(int t) {
        require(status.equals("RUNNING") && job.status(tasks.get(t)) == ExecutionState.CREATED, "it runs");
        start(tasks.get(t));
    }

    @Action
    void lose(int c, int t) {
        require(triggers.containsKey(key(c, t)) || notices.containsKey(key(c, t)), "no message");
        spendFault();
        triggers.remove(key(c, t));
        notices.remove(key(c, t));
    }

    // --- the coordinator triggers

    @Action
    void start_triggering() {
        require(status.equals("RUNNING") && current() < ids && !coordinator.isTriggering()
                && coordinator.getNumberOfPendingCheckpoints() < concurrent, "not now");
        takeUntil(() -> false);
        coordinator.triggerCheckpoint(true);
        require(coordinator.isTriggering(), "the coordinator does not trigger");
        stage = 1;
    }

    /** The plan, in the main thread, and the id, in the executor. */
    @Action
    void make_plan() {
        require(stage == 1, "no trigger");
        long before = current();
        stage = 2;
        if (!takeUntil(() -> current() != before)) {
            end();
        }
    }

    @Action
    void create() {
        require(stage == 2, "no plan");
        int before = seen.size();
        stage = 3;
        if (!takeUntil(() -> seen.size() != before)) {
            end();
        }
    }

    @Action
    void trigger_tasks() {
        require(stage == 3, "no checkpoint");
        end();
    }

    private void end() {
        takeUntil(() -> false);
        stage = 0;
    }

    // --- the coordinator receives

    @Action
    void receive_answer(int c, int t, String branch) throws Exception {
        String answer = answers.remove(key(c, t));
        require(answer != null, "no message");
        boolean last = coordinator.getPendingCheckpoints().containsKey((long) c);
        ExecutionAttemptID id = answered.remove(key(c, t));
        failStore = "failed".equals(branch);
        if (answer.equals("DECLINE")) {
            CheckpointException cause = new CheckpointException(CheckpointFailureReason.CHECKPOINT_DECLINED);
            coordinator.receiveDeclineMessage(new DeclineCheckpoint(job.graph.getJobID(), id, c, cause), "here");
            return;
        }
        boolean stored = false;
        boolean failed = false;
        try {
            coordinator.receiveAcknowledgeMessage(new AcknowledgeCheckpoint(job.graph.getJobID(), id, c), "here");
            stored = last && completed.contains((long) c);
        } catch (CheckpointException e) {
            failed = failStore;
            require(failStore, "not stored: " + e);
            spendFault();
        }
        failStore = false;
        if (stored || failed) {
            otherwise.put("picks", Map.of("branch", stored ? "stored" : "failed"));
        }
    }

    @Action
    void expire(int c) {
        require(coordinator.getPendingCheckpoints().containsKey((long) c), "not pending");
        cancellers.get((long) c).run();
    }

    // --- failures

    @Action
    void fail(int t) {
        require(status.equals("RUNNING") && runs(t) && failures > 0, "no failure is left");
        failures--;
        job.report(tasks.get(t), ExecutionState.FAILED, new Exception("seeded"));
        status = "FAILING";
    }

    @Action
    void stop_scheduler() {
        require(status.equals("FAILING"), "nothing fails");
        status = "RESTARTING";
        listener.jobStatusChanges(job.graph.getJobID(), JobStatus.RESTARTING, 0);
        for (String task : tasks) {
            job.execution(task).cancel();
            if (job.status(task) == ExecutionState.CANCELING) {
                job.report(task, ExecutionState.CANCELED, null);
            }
        }
        triggers.clear();
        notices.clear();
    }

    @Action
    void restore() throws Exception {
        require(status.equals("RESTARTING"), "no restart");
        tasks.forEach(task -> job.tasks.get(task).resetForNewExecution());
        Set<org.apache.flink.runtime.executiongraph.ExecutionJobVertex> vertices = new HashSet<>();
        job.graph.getVerticesTopologically().forEach(vertices::add);
        OptionalLong latest = coordinator.restoreLatestCheckpointedStateToSubtasks(vertices);
        restored = latest.orElse(0);
        attempt++;
        status = "RUNNING";
        listener.jobStatusChanges(job.graph.getJobID(), JobStatus.RUNNING, 0);
    }
}
