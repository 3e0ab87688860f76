package streamproof.flinkclasses;

import java.net.InetAddress;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.function.Consumer;
import org.apache.flink.api.common.JobID;
import org.apache.flink.runtime.clusterframework.types.AllocationID;
import org.apache.flink.runtime.clusterframework.types.ResourceID;
import org.apache.flink.runtime.clusterframework.types.ResourceProfile;
import org.apache.flink.runtime.clusterframework.types.SlotID;
import org.apache.flink.runtime.executiongraph.ExecutionAttemptID;
import org.apache.flink.runtime.instance.InstanceID;
import org.apache.flink.runtime.jobmanager.slots.TaskManagerGateway;
import org.apache.flink.runtime.jobmaster.SlotInfo;
import org.apache.flink.runtime.jobmaster.slotpool.DeclarativeSlotPool;
import org.apache.flink.runtime.jobmaster.slotpool.DefaultAllocatedSlotPool;
import org.apache.flink.runtime.jobmaster.slotpool.DefaultDeclarativeSlotPool;
import org.apache.flink.runtime.messages.Acknowledge;
import org.apache.flink.runtime.resourcemanager.ResourceManagerId;
import org.apache.flink.runtime.resourcemanager.registration.TaskExecutorConnection;
import org.apache.flink.runtime.resourcemanager.slotmanager.DefaultResourceTracker;
import org.apache.flink.runtime.resourcemanager.slotmanager.DefaultSlotStatusSyncer;
import org.apache.flink.runtime.resourcemanager.slotmanager.FineGrainedTaskManagerTracker;
import org.apache.flink.runtime.resourcemanager.slotmanager.SlotStatusSyncer;
import org.apache.flink.runtime.slots.ResourceRequirement;
import org.apache.flink.runtime.taskexecutor.SlotReport;
import org.apache.flink.runtime.taskexecutor.SlotStatus;
import org.apache.flink.runtime.taskexecutor.TaskExecutorGateway;
import org.apache.flink.runtime.taskexecutor.slot.DefaultTimerService;
import org.apache.flink.runtime.taskexecutor.slot.SlotActions;
import org.apache.flink.runtime.taskexecutor.slot.SlotNotFoundException;
import org.apache.flink.runtime.taskexecutor.slot.SlotOffer;
import org.apache.flink.runtime.taskexecutor.slot.TaskSlot;
import org.apache.flink.runtime.taskexecutor.slot.TaskSlotPayload;
import org.apache.flink.runtime.taskexecutor.slot.TaskSlotTable;
import org.apache.flink.runtime.taskexecutor.slot.TaskSlotTableImpl;
import org.apache.flink.runtime.taskexecutor.slot.TimerService;
import org.apache.flink.runtime.taskmanager.TaskManagerLocation;
import org.apache.flink.runtime.util.ResourceCounter;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/**
 * The model `slot_pool`: DefaultSlotStatusSyncer with FineGrainedTaskManagerTracker (ResourceManager), TaskSlotTableImpl
 * (TaskExecutor), DefaultDeclarativeSlotPool with DefaultAllocatedSlotPool (JobMaster). The messages between them, and
 * what TaskExecutor and JobMaster do in the methods that receive these, are written here.
 */
final class SlotFamily extends Family {
    private static final ResourceProfile SLOT = ResourceProfile.newBuilder().setCpuCores(1.0).build();

    /** An allocation, and the messages about it. */
    private static final class Allocation {
        AllocationID id;
        CompletableFuture<Acknowledge> reply;
        boolean request;
        String ack = "NONE";
        boolean available;
        String slotReport = "NONE";
        SlotStatus reported;
        final List<SlotOffer> offers = new ArrayList<>();
        int slotIndex;
        String answer = "NONE";
        String held = "NONE";
        String free = "NONE";
        boolean fail;
        Runnable timer;
        UUID ticket;
        ExecutionAttemptID task;
        CompletableFuture<Object> termination;
    }

    private final JobID job = new JobID();
    private final ResourceID host = ResourceID.generate();
    private final TaskManagerLocation location = new TaskManagerLocation(host, InetAddress.getLoopbackAddress(), 1);
    private Allocation[] allocations;
    private InstanceID instance;
    private FineGrainedTaskManagerTracker tracker;
    private SlotStatusSyncer syncer;
    private TaskSlotTable<TaskSlotPayload> table;
    private TaskSlotTableImpl<?> tableInside;
    private DeclarativeSlotPool pool;
    private boolean overtaking;
    private boolean unterminated;
    private int required;
    private int declared;
    private int slots;
    private int demand;
    private int failures;
    private Allocation starting;
    private final List<AllocationID> returned = new ArrayList<>();

    @Override
    @SuppressWarnings("unchecked")
    void reset(JsonNode parameters, String variant) throws Exception {
        overtaking = parameters.path("overtaking").asBoolean(false);
        unterminated = parameters.path("unterminated").asBoolean(false);
        slots = parameters.get("slots").asInt();
        demand = parameters.get("demand").asInt();
        failures = parameters.get("failures").asInt();
        allocations = new Allocation[parameters.get("allocations").asInt()];
        for (int a = 0; a < allocations.length; a++) {
            allocations[a] = new Allocation();
        }
        required = 0;
        declared = 0;
        ResourceProfile total = SLOT.multiply(slots);
        Executor direct = Runnable::run;
        ScheduledExecutorService scheduler = Reflect.stub(ScheduledExecutorService.class, Map.of("schedule", args -> {
            Object key = Reflect.get(args[0], "key");
            of((AllocationID) key).timer = (Runnable) args[0];
            return Reflect.stub(ScheduledFuture.class, Map.of());
        }));
        TimerService<AllocationID> timers = Fault.wrap(TimerService.class, new DefaultTimerService<>(scheduler, 0));
        tableInside = new TaskSlotTableImpl<>(slots, total, SLOT, 4096, timers, direct);
        table = Fault.wrap(TaskSlotTable.class, (TaskSlotTable<TaskSlotPayload>) tableInside);
        table.start(Reflect.stub(SlotActions.class, Map.of("freeSlot", args -> {
            freeSlot((AllocationID) args[0]);
            return null;
        }, "timeoutSlot", args -> {
            of((AllocationID) args[0]).ticket = (UUID) args[1];
            return null;
        })), JobWorld.mainThread());
        TaskExecutorGateway gateway = Reflect.stub(TaskExecutorGateway.class, Map.of("requestSlot", args -> {
            starting.id = Reflect.argument(AllocationID.class, args);
            starting.request = true;
            starting.reply = new CompletableFuture<>();
            return starting.reply;
        }));
        TaskExecutorConnection connection = new TaskExecutorConnection(host, gateway);
        instance = connection.getInstanceID();
        tracker = new FineGrainedTaskManagerTracker();
        tracker.addTaskManager(connection, total, SLOT);
        SlotStatusSyncer inside = Reflect.make(DefaultSlotStatusSyncer.class);
        syncer = Fault.wrap(SlotStatusSyncer.class, inside);
        Reflect.call(inside, "initialize", tracker, new DefaultResourceTracker(), ResourceManagerId.generate(), direct);
        Consumer<Collection<ResourceRequirement>> declare = all -> required = total(all);
        pool = Fault.wrap(DeclarativeSlotPool.class, Reflect.make(DefaultDeclarativeSlotPool.class, job,
                new DefaultAllocatedSlotPool(), declare));
    }

    private static int total(Collection<ResourceRequirement> all) {
        return all.stream().mapToInt(ResourceRequirement::getNumberOfRequiredSlots).sum();
    }

    private Allocation of(AllocationID id) {
        for (Allocation allocation : allocations) {
            if (id.equals(allocation.id)) {
                return allocation;
            }
        }
        throw new IllegalArgumentException("no allocation " + id);
    }

    private int number(AllocationID id) {
        return List.of(allocations).indexOf(of(id));
    }

    // --- views

    private String rm(Allocation x) {
        Optional<?> slot = (Optional<?>) Reflect.call(tracker, "getAllocatedOrPendingSlot", x.id);
        return slot.isEmpty() ? "UNUSED" : Reflect.call(slot.get(), "getState").toString();
    }

    private TaskSlot<?> slot(Allocation x) {
        return (TaskSlot<?>) ((Map<?, ?>) Reflect.get(tableInside, "allocatedSlots")).get(x.id);
    }

    private String te(Allocation x) {
        return slot(x) == null ? "ABSENT" : Reflect.call(slot(x), "getState").toString();
    }

    private String jm(Allocation x) {
        if (x.id != null && pool.containsFreeSlot(x.id)) {
            return "FREE";
        }
        for (SlotInfo slot : pool.getAllSlotsInformation()) {
            if (slot.getAllocationId().equals(x.id)) {
                return "RESERVED";
            }
        }
        return "ABSENT";
    }

    private int reserved() {
        int count = 0;
        for (Allocation x : allocations) {
            count += jm(x).equals("RESERVED") ? 1 : 0;
        }
        return count;
    }

    private String timer(Allocation x) {
        return x.ticket == null ? "NONE" : table.isValidTimeout(x.id, x.ticket) ? "VALID" : "STALE";
    }

    private interface View {
        Object of(Allocation allocation);
    }

    @Override
    Map<String, Object> state() {
        Map<String, View> views = new LinkedHashMap<>();
        views.put("rm", this::rm);
        views.put("te", this::te);
        views.put("jm", this::jm);
        views.put("task", x -> slot(x) != null && !slot(x).isEmpty());
        views.put("request", x -> x.request);
        views.put("ack", x -> x.ack);
        views.put("available", x -> x.available);
        views.put("slot_report", x -> x.slotReport);
        views.put("offers", x -> x.offers.size());
        views.put("answer", x -> x.answer);
        views.put("held", x -> x.held);
        views.put("free", x -> x.free);
        views.put("fail", x -> x.fail);
        views.put("timer", this::timer);
        Map<String, Object> found = new LinkedHashMap<>();
        views.forEach((name, view) -> {
            List<Object> values = new ArrayList<>();
            for (Allocation x : allocations) {
                values.add(view.of(x));
            }
            found.put(name, values);
        });
        found.put("required", total(pool.getResourceRequirements()));
        found.put("declared", declared);
        found.put("failures_left", failures);
        Object budget = Reflect.call(Reflect.get(tableInside, "budgetManager"), "getAvailableBudget");
        found.put("free_slots", (int) Math.round(((ResourceProfile) budget).getCpuCores().getValue().doubleValue()));
        return found;
    }

    private void happens() {
        require(failures > 0, "no failure is left");
        failures--;
    }

    // --- the TaskExecutor

    @Action
    void receive_request(int a) {
        Allocation x = allocations[a];
        require(x.request, "no request");
        x.request = false;
        x.slotReport = x.slotReport.equals("HAS_NOT") ? "BEFORE" : x.slotReport;
        boolean done;
        try {
            Object result = Reflect.call(table, "allocateSlot", -1, job, x.id, SLOT, java.time.Duration.ofHours(1));
            done = result == null || (Boolean) result;
        } catch (Exception e) {
            done = false;
        }
        x.ack = done ? "DONE" : "REFUSED";
    }

    private void offerSlot(Allocation x) {
        for (Iterator<TaskSlot<TaskSlotPayload>> i = table.getAllocatedSlots(job); i.hasNext();) {
            SlotOffer offer = i.next().generateSlotOffer();
            if (offer.getAllocationId().equals(x.id)) {
                x.offers.add(offer);
                x.slotIndex = offer.getSlotIndex();
                return;
            }
        }
        throw new Refused("no slot to offer");
    }

    @Action
    void offer(int a) {
        Allocation x = allocations[a];
        require(x.offers.isEmpty() && x.answer.equals("NONE"), "offered already");
        offerSlot(x);
    }

    @Action
    void offer_again(int a) {
        Allocation x = allocations[a];
        require(x.offers.size() + (x.answer.equals("NONE") ? 0 : 1) == 1 && failures > 0, "not offered");
        offerSlot(x);
        happens();
        x.answer = "NONE";
    }

    @Action
    void receive_answer(int a) {
        Allocation x = allocations[a];
        require(!x.answer.equals("NONE") && !x.held.equals("BEFORE") && !x.free.equals("BEFORE"), "no answer");
        if (x.answer.equals("REJECTED")) {
            freeSlot(x.id);
        } else {
            try {
                x.fail |= !table.markSlotActive(x.id);
            } catch (SlotNotFoundException e) {
                x.fail = true;
            }
        }
        x.answer = "NONE";
    }

    /** TaskExecutor.freeSlotInternal. */
    private void freeSlot(AllocationID id) {
        try {
            of(id).available |= table.freeSlot(id, new Exception("seeded")) != -1;
        } catch (SlotNotFoundException e) {
            // as in TaskExecutor: it is gone
        }
    }

    @Action
    void receive_free(int a) {
        require(!allocations[a].free.equals("NONE"), "no message");
        allocations[a].free = "NONE";
        freeSlot(allocations[a].id);
    }

    /** TaskExecutor.syncTaskSlotsWithJobMaster. */
    @Action
    void receive_held(int a) {
        Allocation x = allocations[a];
        require(!x.held.equals("NONE"), "no message");
        if (x.held.equals("HELD")) {
            x.fail |= !table.isAllocated(x.slotIndex, job, x.id);
        } else if (table.getActiveTaskSlotAllocationIdsPerJob(job).contains(x.id)) {
            freeSlot(x.id);
        }
        x.held = "NONE";
    }

    @Action
    void send_slot_report(int a) {
        Allocation x = allocations[a];
        require(x.slotReport.equals("NONE") && !rm(x).equals("UNUSED"), "nothing to report");
        x.reported = null;
        for (SlotStatus status : table.createSlotReport(host)) {
            x.reported = x.id.equals(status.getAllocationID()) ? status : x.reported;
        }
        x.slotReport = x.reported == null ? "HAS_NOT" : "HAS";
    }

    @Action
    void stop_task(int a) {
        Allocation x = allocations[a];
        require(te(x).equals("RELEASING"), "not releasing");
        endTask(x);
    }

    private void endTask(Allocation x) {
        if (unterminated) {
            table.removeTask(x.task);
        }
        x.termination.complete(null);
        table.removeTask(x.task);
    }

    // --- failures

    @Action
    void expire(int a) {
        Allocation x = allocations[a];
        require(te(x).equals("ALLOCATED") && x.ticket == null, "no timer");
        happens();
        x.timer.run();
    }

    @Action
    void receive_timeout(int a) {
        Allocation x = allocations[a];
        require(x.ticket != null, "no message");
        if (table.isValidTimeout(x.id, x.ticket)) {
            freeSlot(x.id);
        }
        x.ticket = null;
    }

    /** JobMaster.disconnectTaskManager and TaskExecutor.disconnectJobManagerConnection. */
    @Action
    void disconnect(int a) throws Exception {
        Allocation x = allocations[a];
        require(!jm(x).equals("ABSENT") && !te(x).equals("RELEASING"), "not connected");
        happens();
        pool.releaseSlot(x.id, new Exception("seeded"));
        if (slot(x) != null && !slot(x).isEmpty()) {
            endTask(x);
        }
        if (table.getActiveTaskSlotAllocationIdsPerJob(job).contains(x.id)
                && !table.markSlotInactive(x.id, java.time.Duration.ofHours(1))) {
            freeSlot(x.id);
        }
        x.offers.clear();
        x.answer = "NONE";
        x.held = "NONE";
        x.free = "NONE";
        x.fail = false;
    }

    @Action
    void lose_free(int a) {
        require(!allocations[a].free.equals("NONE"), "no message");
        happens();
        allocations[a].free = "NONE";
    }

    @Action
    void lose_available(int a) {
        require(allocations[a].available, "no message");
        happens();
        allocations[a].available = false;
    }

    // --- the JobMaster

    @Action
    void require_slot() {
        require(total(pool.getResourceRequirements()) < demand, "no more demand");
        pool.increaseResourceRequirementsBy(ResourceCounter.withResource(SLOT, 1));
    }

    @Action
    void cancel_request() {
        require(total(pool.getResourceRequirements()) > reserved(), "no request waits");
        requireLess();
    }

    private void requireLess() {
        pool.decreaseResourceRequirementsBy(ResourceCounter.withResource(SLOT, 1));
    }

    @Action
    void declare() {
        required = total(pool.getResourceRequirements());
        require(declared != required, "nothing has changed");
        declared = required;
    }

    @Action
    void receive_offer(int a) {
        Allocation x = allocations[a];
        require(!x.offers.isEmpty(), "no message");
        SlotOffer offer = x.offers.remove(0);
        boolean accepted = !pool.offerSlots(List.of(offer), location, jobMasterGateway(), 0).isEmpty();
        if (x.answer.equals("NONE") && x.offers.isEmpty()) {
            x.answer = accepted ? "ACCEPTED" : "REJECTED";
            x.held = accepted && x.held.equals("NOT_HELD") ? "BEFORE" : x.held;
            x.free = accepted && x.free.equals("SENT") ? "BEFORE" : x.free;
        }
    }

    private TaskManagerGateway jobMasterGateway() {
        return Reflect.stub(TaskManagerGateway.class, Map.of("freeSlot", args -> {
            returned.add((AllocationID) args[0]);
            return CompletableFuture.completedFuture(Acknowledge.get());
        }));
    }

    @Action
    void reserve(int a) {
        Allocation x = allocations[a];
        require(jm(x).equals("FREE") && total(pool.getResourceRequirements()) > reserved(), "no request waits");
        pool.reserveFreeSlot(x.id, SLOT);
    }

    @Action
    void deploy(int a) throws Exception {
        Allocation x = allocations[a];
        require(jm(x).equals("RESERVED") && te(x).equals("ACTIVE") && slot(x).isEmpty(), "the slot is not ready");
        require(table.tryMarkSlotActive(job, x.id), "no slot");
        x.task = ExecutionAttemptID.randomId();
        x.termination = new CompletableFuture<>();
        Map<String, Reflect.Handler> task = new HashMap<>();
        task.put("getJobID", args -> job);
        task.put("getExecutionId", args -> x.task);
        task.put("getAllocationId", args -> x.id);
        task.put("getTerminationFuture", args -> x.termination);
        require(table.addTask(Reflect.stub(TaskSlotPayload.class, task)), "not added");
    }

    @Action
    void finish(int a) {
        Allocation x = allocations[a];
        require(te(x).equals("ACTIVE") && !slot(x).isEmpty() && jm(x).equals("RESERVED"), "no task runs");
        endTask(x);
        pool.freeReservedSlot(x.id, null, 0);
        requireLess();
    }

    @Action
    void abandon(int a) {
        Allocation x = allocations[a];
        require(jm(x).equals("RESERVED") && x.free.equals("NONE"), "not in use");
        pool.releaseSlot(x.id, new Exception("seeded"));
        requireLess();
        x.free = "SENT";
    }

    @Action
    void release_idle(int a) {
        for (Allocation x : allocations) {
            require(!jm(x).equals("FREE") || x.free.equals("NONE"), "one message at a time");
        }
        returned.clear();
        pool.releaseIdleSlots(Long.MAX_VALUE / 4);
        require(!returned.isEmpty(), "no slot is idle");
        for (AllocationID id : returned) {
            of(id).free = "SENT";
            if (id.equals(returned.get(0))) {
                otherwise.put("args", Map.of("a", number(id)));
            } else {
                happened("release_idle", Map.of("a", number(id)));
            }
        }
    }

    @Action
    void receive_failure(int a) {
        require(allocations[a].fail, "no message");
        allocations[a].fail = false;
        pool.releaseSlot(allocations[a].id, new Exception("seeded"));
    }

    @Action
    void send_held(int a) {
        Allocation x = allocations[a];
        require(x.held.equals("NONE") && (!te(x).equals("ABSENT") || !jm(x).equals("ABSENT")), "nothing to report");
        x.held = jm(x).equals("ABSENT") ? "NOT_HELD" : "HELD";
    }

    // --- the ResourceManager

    private boolean isUnused(Allocation x) {
        boolean views = rm(x).equals("UNUSED") && te(x).equals("ABSENT") && jm(x).equals("ABSENT");
        boolean messages = x.request || x.available || x.fail || !x.offers.isEmpty() || x.ticket != null;
        for (String message : List.of(x.ack, x.slotReport, x.answer, x.held, x.free)) {
            messages |= !message.equals("NONE");
        }
        return views && !messages;
    }

    @Action
    void start_allocation(int a) {
        int taken = 0;
        for (Allocation x : allocations) {
            taken += rm(x).equals("UNUSED") ? 0 : 1;
        }
        require(isUnused(allocations[a]) && declared > taken && taken < slots, "nothing to allocate");
        starting = allocations[a];
        starting.timer = null;
        Reflect.call(syncer, "allocateSlot", instance, job, "jobmaster", SLOT);
    }

    @Action
    void receive_ack(int a) {
        Allocation x = allocations[a];
        require(!x.ack.equals("NONE") && !x.slotReport.equals("BEFORE"), "no message");
        if (x.ack.equals("DONE")) {
            x.reply.complete(Acknowledge.get());
        } else {
            x.reply.completeExceptionally(new Exception("seeded"));
        }
        x.ack = "NONE";
    }

    @Action
    void receive_available(int a) {
        require(allocations[a].available && (overtaking || !allocations[a].slotReport.equals("HAS")), "no message");
        allocations[a].available = false;
        syncer.freeSlot(allocations[a].id);
    }

    /** The report about one slot: the others as the ResourceManager knows them, which changes nothing. */
    @Action
    void receive_slot_report(int a) {
        require(!allocations[a].slotReport.equals("NONE"), "no message");
        List<SlotStatus> all = new ArrayList<>();
        for (Allocation x : allocations) {
            if (x == allocations[a] && x.reported != null) {
                all.add(x.reported);
            } else if (x != allocations[a] && rm(x).equals("ALLOCATED")) {
                all.add(new SlotStatus(new SlotID(host, 0), SLOT, job, x.id));
            }
        }
        allocations[a].slotReport = "NONE";
        syncer.reportSlotStatus(instance, new SlotReport(all));
    }
}
