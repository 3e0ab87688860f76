package streamproof.flink;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/** A method whose calls are recorded: its class, its names in the versions of Flink, how many parameters it has. */
enum Hook {
    C_EXCL_REQUEST("c.excl_request", Names.BUFFERS, 1, "requestExclusiveBuffers"),
    C_REQUEST("c.request", Names.CHANNEL, 0, "requestSubpartitions", "requestSubpartition"),
    C_BUFFER_TAKEN("c.buffer_taken", Names.BUFFERS, 0, "requestBuffer"),
    C_RECV("c.recv", Names.CHANNEL, -1, "onBuffer"),
    C_RECV_EMPTY("c.recv_empty", Names.CHANNEL, 2, "onEmptyBuffer"),
    C_BACKLOG("c.backlog", Names.CHANNEL, 1, "onSenderBacklog"),
    C_FLOAT_REQUEST("c.float_request", Names.BUFFERS, 1, "requestFloatingBuffers"),
    C_FLOAT_OFFERED("c.float_offered", Names.BUFFERS, 1, "notifyBufferAvailable"),
    C_EXCL_RECYCLE("c.excl_recycle", Names.BUFFERS, 1, "recycle"),
    C_CREDIT_GAIN("c.credit_gain", Names.CHANNEL, 1, "notifyBufferAvailable"),
    C_CREDIT_ANNOUNCE("c.credit_announce", Names.CHANNEL, 0, "getAndResetUnannouncedCredit"),
    C_POLL("c.poll", Names.CHANNEL, 0, "getNextBuffer"),
    C_BLOCKED("c.blocked", Names.CHANNEL, 0, "onBlockingUpstream"),
    C_FLOAT_RELEASE("c.float_release", Names.BUFFERS, 0, "releaseFloatingBuffers"),
    C_RESUME("c.resume", Names.CHANNEL, 0, "resumeConsumption"),
    C_RELEASE("c.release", Names.CHANNEL, 0, "releaseAllResources"),
    C_RELEASE_BUFFERS("c.release_buffers", Names.BUFFERS, 1, "releaseAllBuffers"),
    C_ERROR("c.error", Names.CHANNEL, 1, "onError"),
    C_PARTITION_NOT_FOUND("c.partition_not_found", Names.CHANNEL, 0, "onFailedPartitionRequest"),
    C_RETRIGGER("c.retrigger", Names.CHANNEL, 0, "retriggerSubpartitionRequest"),
    P_REQUEST("p.request", Names.READER, 3, "requestSubpartitionViewOrRegisterListener", "requestSubpartitionView"),
    P_ENQUEUE("p.enqueue", Names.SUBPARTITION, 3, "add"),
    P_CREDIT_ADD("p.credit_add", Names.READER, 1, "addCredit"),
    P_SEND("p.send", Names.READER, 0, "getNextBuffer"),
    P_BACKLOG_ANNOUNCE("p.backlog_announce", Names.QUEUE, 2, "announceBacklog"),
    P_RESUME("p.resume", Names.READER, 0, "resumeConsumption"),
    P_RELEASE("p.release", Names.READER, 0, "releaseAllResources"),
    P_CANCEL("p.cancel", Names.QUEUE, 1, "cancel"),
    G_POOL("g.pool", Names.GATE, 1, "setBufferPool"),
    G_FLOAT_RECYCLE("g.float_recycle", Names.POOL, 1, "recycle");

    /** The classes that have hooked methods, by their internal names. */
    static final Set<String> CLASSES =
            java.util.Arrays.stream(values()).map(h -> h.owner).collect(Collectors.toUnmodifiableSet());

    /** What the call is named in a record. */
    final String event;

    private final String owner;
    private final int parameters;
    private final List<String> methods;

    Hook(String event, String owner, int parameters, String... methods) {
        this.event = event;
        this.owner = owner;
        this.parameters = parameters;
        this.methods = List.of(methods);
    }

    /** The hook of a method, or null. */
    static Hook of(String owner, String method, int parameters) {
        List<Hook> found = new ArrayList<>();
        for (Hook hook : values()) {
            boolean counts = hook.parameters < 0 || hook.parameters == parameters;
            if (hook.owner.equals(owner) && hook.methods.contains(method) && counts) {
                found.add(hook);
            }
        }
        return found.isEmpty() ? null : found.get(0);
    }

    private static final class Names {
        static final String NETWORK = "org/apache/flink/runtime/io/network/";
        static final String CHANNEL = NETWORK + "partition/consumer/RemoteInputChannel";
        static final String BUFFERS = NETWORK + "partition/consumer/BufferManager";
        static final String GATE = NETWORK + "partition/consumer/SingleInputGate";
        static final String SUBPARTITION = NETWORK + "partition/PipelinedSubpartition";
        static final String READER = NETWORK + "netty/CreditBasedSequenceNumberingViewReader";
        static final String QUEUE = NETWORK + "netty/PartitionRequestQueue";
        static final String POOL = NETWORK + "buffer/LocalBufferPool";
    }
}
