package streamproof.flinkclasses;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import org.apache.flink.core.memory.MemorySegmentProvider;
import org.apache.flink.runtime.clusterframework.types.ResourceID;
import org.apache.flink.runtime.io.network.ConnectionID;
import org.apache.flink.runtime.io.network.ConnectionManager;
import org.apache.flink.runtime.io.network.PartitionRequestClient;
import org.apache.flink.runtime.io.network.TaskEventPublisher;
import org.apache.flink.runtime.io.network.buffer.Buffer;
import org.apache.flink.runtime.io.network.buffer.BufferPool;
import org.apache.flink.runtime.io.network.buffer.NetworkBufferPool;
import org.apache.flink.runtime.io.network.netty.NettyPartitionRequestClient;
import org.apache.flink.runtime.io.network.partition.PartitionProducerStateProvider;
import org.apache.flink.runtime.io.network.partition.ResultPartitionProvider;
import org.apache.flink.runtime.io.network.partition.ResultPartitionType;
import org.apache.flink.runtime.io.network.partition.consumer.SingleInputGate;
import org.apache.flink.runtime.jobgraph.IntermediateDataSetID;
import org.apache.flink.runtime.throughput.ThroughputCalculator;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.netty4.io.netty.channel.ChannelHandler;
import org.apache.flink.util.clock.SystemClock;
import org.apache.flink.util.function.SupplierWithException;

/**
 * The model `credit_channel`: SingleInputGate with a RemoteInputChannel, its BufferManager and a LocalBufferPool, and
 * CreditBasedPartitionRequestClientHandler on the consumer's end; {@link CreditProducer} is the other end. The network between
 * the ends, the consuming task, and the other channels of the gate, which have the pool's other buffers, are written here.
 */
final class CreditFamily extends Family {
    private static final int NETWORK = 0;
    private static final int OTHERS = 4;

    private CreditProducer producer;
    private Wire client;
    private SingleInputGate gate;
    private RecordedChannel channel;
    private GatePool pool;
    private int exclusive;
    private int floating;
    private boolean rare;
    private boolean requestedExclusive;
    private boolean requestedSubpartition;
    private boolean released;
    private boolean polledBlocking;

    /** Exclusive buffers that the task uses. */
    private final Deque<Buffer> used = new ArrayDeque<>();
    /** Actions that Flink took inside of the present call, behind the one that was asked for. */
    private final Deque<Map.Entry<String, Map<String, Object>>> inner = new ArrayDeque<>();

    // Calls that are not finished: of the network thread for a message, and of each thread for free buffers.
    private boolean bufferRequested;
    private boolean requestedOneExclusive;
    private Integer backlog;
    private boolean backlogNoted;
    private Integer[] gained;
    private int thread;

    @Override
    List<String> own() {
        return List.of("announce_backlog"); // once for each notification
    }

    @Override
    List<String> unsupported() {
        return rare ? List.of("refuse", "send_stored") : List.of("send_stored"); // Flink 1.17; blocking partitions
    }

    @Override
    void reset(JsonNode parameters, String variant) throws Exception {
        rare = "flink".equals(variant);
        exclusive = parameters.get("exclusive").asInt();
        floating = parameters.get("floating").asInt();
        gained = new Integer[parameters.get("threads").asInt()];
        NetworkBufferPool network = new NetworkBufferPool(exclusive + floating + OTHERS + 2, 16);
        pool = new GatePool(network, floating + OTHERS, this::offered);
        producer = new CreditProducer(exclusive);
        Object protocol = Reflect.make(Class.forName("org.apache.flink.runtime.io.network.netty.NettyProtocol"),
                Reflect.stub(ResultPartitionProvider.class, Map.of()), Reflect.stub(TaskEventPublisher.class, Map.of()));
        ChannelHandler[] handlers = (ChannelHandler[]) Reflect.call(protocol, "getClientChannelHandlers");
        client = new Wire(handlers, "", message -> {});
        ConnectionID id = Reflect.make(ConnectionID.class, ResourceID.generate(), new java.net.InetSocketAddress("localhost", 1), 0);
        Reflect.call(handlers[handlers.length - 1], "setConnectionId", id);
        NettyPartitionRequestClient inside = Reflect.make(
                NettyPartitionRequestClient.class, client.channel(), handlers[handlers.length - 1], id,
                Reflect.make(Class.forName("org.apache.flink.runtime.io.network.netty.PartitionRequestClientFactory")));
        Reflect.call(inside, "validateClientAndIncrementReferenceCounter"); // this channel, and another one
        Reflect.call(inside, "validateClientAndIncrementReferenceCounter");
        PartitionRequestClient requests = Fault.wrap(PartitionRequestClient.class, inside);
        SupplierWithException<BufferPool, IOException> pools = pool::create;
        gate = Reflect.make(SingleInputGate.class, "task", 0, new IntermediateDataSetID(), ResultPartitionType.PIPELINED_BOUNDED, 1,
                Reflect.stub(PartitionProducerStateProvider.class, Map.of()), pools,
                Fault.wrap(MemorySegmentProvider.class, network), 16,
                new ThroughputCalculator(SystemClock.getInstance()));
        channel = new RecordedChannel(gate, producer.partition(), id,
                Reflect.stub(ConnectionManager.class, Map.of("createPartitionRequestClient", args -> requests)), exclusive,
                number -> backlog = number, this::gains);
        gate.setInputChannels(channel);
    }

    /** The pool has offered a buffer to the channel, which is an action of the model. */
    private void offered(boolean used) {
        if (used) {
            inside("accept_floating_buffer", Map.of("got", gained[thread], "t", thread));
        } else {
            inside("decline_floating_buffer", Map.of("noted", !waiting()));
        }
    }

    private void inside(String action, Map<String, Object> args) {
        inner.add(Map.entry(action, args));
    }

    private void report() {
        inner.forEach(one -> happened(one.getKey(), one.getValue()));
        inner.clear();
    }

    private void gains(int number) {
        gained[thread] = number;
    }

    private Object buffers() {
        return Reflect.get(channel, "bufferManager");
    }

    private int count(String kind) {
        return ((Deque<?>) Reflect.get(Reflect.get(buffers(), "bufferQueue"), kind)).size();
    }

    private boolean waiting() {
        return (Boolean) Reflect.get(buffers(), "isWaitingForFloatingBuffers");
    }

    private List<?> received() {
        List<Object> all = new ArrayList<>();
        ((Iterable<?>) Reflect.get(channel, "receivedBuffers")).forEach(all::add);
        return all;
    }

    private int priorities() {
        return (Integer) Reflect.call(Reflect.get(channel, "receivedBuffers"), "getNumPriorityElements");
    }

    private static Buffer buffer(Object sequenceBuffer) {
        return (Buffer) Reflect.get(sequenceBuffer, "buffer");
    }

    private Map<String, Object> element(Object sequenceBuffer) {
        Buffer buffer = buffer(sequenceBuffer);
        return Map.of("sequence_number", Reflect.get(sequenceBuffer, "sequenceNumber"), "data_type", buffer.getDataType().name(),
                "size", Math.min(buffer.getSize(), 1), "exclusive", buffer.getRecycler() == buffers());
    }

    @Override
    Map<String, Object> state() {
        Map<String, Object> state = producer.state();
        List<Integer> credits = new ArrayList<>();
        int before = 0;
        boolean resumes = false;
        int requests = 0;
        for (Wire.Message message : client.sent) {
            requests += message.kind().equals("PartitionRequest") ? 1 : 0;
            if (message.kind().equals("AddCredit")) {
                credits.add(message.number("credit"));
            } else if (message.kind().equals("ResumeConsumption")) {
                resumes = true;
                before = credits.size();
            }
        }
        state.put("partition_requests", requests);
        state.put("add_credits", credits);
        state.put("resume_consumption_sent", resumes);
        state.put("add_credits_before_resume", before);
        state.put("exclusive_requested", requestedExclusive);
        state.put("exclusive_buffers", count("exclusiveBuffers"));
        state.put("floating_buffers", count("floatingBuffers"));
        state.put("is_waiting_for_floating_buffers", waiting());
        state.put("exclusive_in_use", released ? 0 : used.size());
        state.put("buffer_requested", bufferRequested);
        state.put("requested_exclusive", requestedOneExclusive);
        state.put("credit_gained", Arrays.asList(gained));
        state.put("unannounced_credit", channel.getUnannouncedCredit());
        state.put("expected_sequence_number", Reflect.get(channel, "expectedSequenceNumber"));
        state.put("channel_released", channel.isReleased());
        state.put("sender_backlog", backlog);
        if (!released) {
            state.put("num_required_buffers", channel.getNumberOfRequiredBuffers());
        }
        List<?> all = received();
        List<Object> first = new ArrayList<>();
        List<Object> rest = new ArrayList<>();
        Object blocking = null;
        for (int i = 0; i < all.size(); i++) {
            if (i < priorities()) {
                first.add(element(all.get(i)));
            } else if (buffer(all.get(i)).getDataType().isBlockingUpstream()) {
                blocking = element(all.get(i));
            } else {
                rest.add(element(all.get(i)));
            }
        }
        state.put("received_priority_buffers", first);
        state.put("received_buffers", rest);
        state.put("received_blocking_event", blocking);
        return state;
    }

    // --- the consumer: requests

    @Action
    void request_exclusive_buffers() throws Exception {
        require(!requestedExclusive, "the gate is set up");
        gate.setup();
        requestedExclusive = true;
    }

    @Action
    void request_subpartition() {
        require(requestedExclusive && !released, "the gate is not set up, or released");
        if (requestedSubpartition) {
            require(client.sent.isEmpty() && !producer.created(), "the request is on its way, or has arrived");
            throw new Unsupported("a request is repeated only when the partition was not found");
        }
        requestedSubpartition = true;
        gate.requestPartitions();
    }

    @Action
    void retrigger_request() {
        require(requestedExclusive && !released, "the gate is not set up, or released");
        if (producer.errors().isEmpty()) {
            require(client.sent.isEmpty() && !producer.created(), "the request is on its way, or has arrived");
            throw new Unsupported("a request is repeated only when the partition was not found");
        }
        Wire.Message error = producer.errors().remove();
        client.receive(error, error.bytes.readableBytes());
        Reflect.call(channel, "retriggerSubpartitionRequest"); // the gate asks for this class, not for one that extends it
    }

    // --- the consumer: the network thread

    /** The first message on its way, if its kind is given, and the network thread has finished with the one before. */
    private Wire.Message arrives(String kind) {
        require(backlog == null && gained[NETWORK] == null, "the network thread is busy");
        Wire.Message message = producer.responses().peek();
        require(message != null && message.kind().equals(kind), "no " + kind + " is first");
        return message;
    }

    private static Buffer.DataType type(Wire.Message message) {
        return (Buffer.DataType) Reflect.get(message.content, "dataType");
    }

    private void receive(Wire.Message message, int bytes) throws IOException {
        thread = NETWORK;
        client.receive(message, bytes);
        if (!message.bytes.isReadable()) {
            producer.responses().remove();
            bufferRequested = false;
            requestedOneExclusive = false;
        }
        pool.takeAll();
        if (!released) {
            Reflect.call(channel, "checkError");
        }
    }

    private void requestBuffer(Wire.Message message) throws IOException {
        require(type(message).isBuffer() && !bufferRequested, "an event, or the buffer was requested");
        int before = count("exclusiveBuffers");
        int size = message.number("bufferSize");
        bufferRequested = true;
        receive(message, message.bytes.readableBytes() - size);
        requestedOneExclusive = size > 0 && count("exclusiveBuffers") < before;
    }

    @Action
    void request_buffer() throws IOException {
        require(!released, "the channel is released");
        Wire.Message message = arrives("BufferResponse");
        requestBuffer(message);
        if (backlog != null) { // no data follow
            Integer end = gained[NETWORK];
            gained[NETWORK] = null;
            report();
            if (end != null) {
                channel.handleBufferAvailable(end);
                happened("notify_buffer_available", Map.of("t", NETWORK));
            }
            happened("on_empty_buffer", Map.of());
        }
    }

    @Action
    void request_buffer_after_release() throws IOException {
        require(released, "the channel is not released");
        Wire.Message message = arrives("BufferResponse");
        if (message.number("bufferSize") == 0) {
            throw new Unsupported("the message has no more than a header");
        }
        requestBuffer(message);
    }

    @Action
    void on_blocking_upstream() throws IOException {
        Wire.Message message = arrives("BufferResponse");
        require(type(message).isBlockingUpstream(), "the message does not block");
        if (released) {
            throw new Unsupported("a released channel is not called, unless the release comes in between");
        }
        receive(message, message.bytes.readableBytes());
        if (exclusive == 0) {
            happened("release_floating_buffers", Map.of());
        }
        report();
        happened("on_buffer", Map.of("size", 1));
    }

    @Action
    void on_buffer(int size) throws IOException {
        require(!released, "the channel is released");
        Wire.Message message = arrives("BufferResponse");
        require(!type(message).isBlockingUpstream() && (bufferRequested || !type(message).isBuffer()), "another call comes first");
        otherwise.put("args", Map.of("size", 1));
        receive(message, message.bytes.readableBytes());
    }

    @Action
    void discard() throws IOException {
        require(released, "the channel is not released");
        Wire.Message message = producer.responses().peek();
        require(message != null && message.kind().equals("BufferResponse"), "no message is first");
        receive(message, message.bytes.readableBytes());
    }

    @Action
    void receive_backlog_announcement() throws IOException {
        Wire.Message message = arrives("BacklogAnnouncement");
        if (released) {
            throw new Unsupported("a released channel drops the announcement, and cancels once more");
        }
        receive(message, message.bytes.readableBytes());
        backlogNoted = true;
    }

    @Action
    void on_sender_backlog() {
        require(backlog != null && !backlogNoted, "no buffer was received");
        backlogNoted = true;
    }

    @Action
    void request_floating_buffers(int got) throws IOException {
        require(backlog != null && backlogNoted && gained[NETWORK] == null, "no backlog was noted");
        if (!waiting() && !released) {
            pool.give(Math.min(got, floating - count("floatingBuffers")));
        }
        thread = NETWORK;
        int number = backlog;
        backlog = null;
        backlogNoted = false;
        channel.handleSenderBacklog(number);
        pool.takeAll();
        otherwise.put("args", Map.of("got", gained[NETWORK]));
    }

    @Action
    void notify_buffer_available(int t) throws IOException {
        require(gained[t] != null, "the thread has gained no buffer");
        int number = gained[t];
        gained[t] = null;
        channel.handleBufferAvailable(number);
    }

    @Action
    void announce_credit() {
        int credit = channel.getUnannouncedCredit();
        int before = client.sent.size();
        client.runAll();
        if (released && credit > 0 && client.sent.size() == before) {
            throw new Unsupported("credit of a released channel is announced only if the release comes in between");
        }
    }

    // --- the consumer: the task, and other threads

    /** Another channel returns a buffer to the pool, in this thread. */
    private void offer(int t) {
        if (pool.others.isEmpty() || count("floatingBuffers") >= floating) {
            throw new Unsupported("no other channel has a buffer that the pool may grant");
        }
        thread = t;
        pool.give(1);
        pool.takeAll();
        if (inner.isEmpty() && released) {
            throw new Unsupported("the channel is no listener any more");
        }
        require(!inner.isEmpty(), "the pool offers the buffer to nobody");
        Map.Entry<String, Map<String, Object>> first = inner.remove();
        otherwise.put("event", first.getKey());
        otherwise.put("args", first.getValue());
        report();
    }

    private boolean needs() {
        return !released && count("exclusiveBuffers") + count("floatingBuffers") < channel.getNumberOfRequiredBuffers();
    }

    @Action
    void accept_floating_buffer(int got, int t) {
        require(waiting() && needs() && got > 0 && gained[t] == null, "the channel does not wait for a buffer");
        offer(t);
    }

    @Action
    void decline_floating_buffer(boolean noted) {
        require(waiting() && !needs(), "the channel does not wait, or needs a buffer");
        offer(gained.length - 1);
    }

    @Action
    void recycle(int t) throws IOException {
        require(gained[t] == null, "the thread is busy");
        require(released || !used.isEmpty(), "the task has no exclusive buffer");
        thread = t;
        if (!used.isEmpty()) {
            used.pop().recycleBuffer();
        }
        pool.takeAll();
        report();
    }

    private void take() throws IOException {
        Buffer next = channel.getNextBuffer().orElseThrow(() -> new Refused("nothing was received")).buffer();
        polledBlocking |= next.getDataType().isBlockingUpstream();
        if (next.getRecycler() == buffers()) {
            used.push(next);
        } else if (next.isBuffer()) {
            pool.others.push(next);
        } else {
            next.recycleBuffer();
        }
    }

    @Action
    void poll_priority() throws IOException {
        require(priorities() > 0, "no priority event was received");
        take();
    }

    @Action
    void poll() throws IOException {
        require(!received().isEmpty() && priorities() == 0, "nothing was received, or a priority event is first");
        take();
    }

    @Action
    void poll_timed_out() throws IOException {
        List<?> all = received();
        require(!all.isEmpty() && priorities() == 0, "nothing was received, or a priority event is first");
        Object last = all.get(all.size() - 1);
        require(buffer(last).getDataType() == Buffer.DataType.TIMEOUTABLE_ALIGNED_CHECKPOINT_BARRIER, "no barrier is last");
        Integer number = (Integer) Reflect.get(last, "sequenceNumber");
        if (!Reflect.get(channel, "lastBarrierSequenceNumber").equals(number)) {
            throw new Unsupported("the barrier is older than another one that was received");
        }
        channel.convertToPriorityEvent(number);
        polledBlocking = true;
        take();
    }

    @Action
    void resume_consumption(int t) throws IOException {
        require(polledBlocking && !released && gained[t] == null, "the task has no blocking event");
        polledBlocking = false;
        int credit = exclusive == 0 ? 0 : channel.getUnannouncedCredit();
        channel.resumeConsumption();
        client.runAll();
        if (credit > 0) {
            happenedBefore("announce_credit", Map.of());
        }
    }

    @Action
    void release_channel() {
        require(!released, "the channel is released");
        released = true;
        requestedOneExclusive = false; // that buffer goes back to the global pool
        Reflect.call(channel, "releaseAllResources");
        happened("clear_received_buffers", Map.of());
        happened("release_all_buffers", Map.of());
        report();
        pool.takeAll();
    }

    @Action
    void clear_received_buffers() {
        require(released, "the channel is not released");
    }

    // --- the producer

    /** The producer has sent messages, or released the reader, in the present call. */
    private void answer(List<Map.Entry<String, Map<String, Object>>> done, boolean asked) {
        for (Map.Entry<String, Map<String, Object>> one : done) {
            if (asked) {
                otherwise.put("event", one.getKey());
                otherwise.put("args", one.getValue());
                asked = false;
            } else {
                happened(one.getKey(), one.getValue());
            }
        }
    }

    /** The next message to the producer, which has to be of a kind. */
    private Wire.Message request(String kind) {
        require(client.sent.stream().anyMatch(message -> message.kind().equals(kind)), "no " + kind + " is on its way");
        if (!client.sent.peek().kind().equals(kind)) {
            throw new Unsupported("another message comes first");
        }
        return client.sent.remove();
    }

    @Action
    void add(String data_type) throws IOException {
        require(producer.add(Buffer.DataType.valueOf(data_type)), "the subpartition is finished or released");
    }

    @Action
    void release_subpartition() {
        producer.releaseSubpartition();
    }

    @Action
    void request_subpartition_view() {
        producer.receive(request("PartitionRequest"));
    }

    @Action
    void notify_reader_created() throws IOException {
        producer.register();
    }

    @Action
    void time_out() throws InterruptedException {
        producer.timeOut();
    }

    @Action
    void add_credit() {
        require(producer.hasReader(), "there is no reader");
        answer(producer.receive(request("AddCredit")), false);
    }

    @Action
    void resume_subpartition() {
        require(producer.hasReader(), "there is no reader");
        answer(producer.receive(request("ResumeConsumption")), false);
    }

    @Action
    void cancel() {
        if (producer.isClosed() || client.sent.stream().noneMatch(message -> message.kind().equals("CancelPartitionRequest"))) {
            require(released, "the channel is not released");
            throw new Unsupported("no CancelPartitionRequest is on its way");
        }
        answer(producer.cancel(request("CancelPartitionRequest")), false);
    }

    @Action
    void release_reader() {
        producer.close();
    }

    @Action
    void send_data(boolean unfinished) {
        answer(producer.send(unfinished), true);
    }

    @Action
    void send_event() {
        answer(producer.send(false), true);
    }

    @Action
    void announce_backlog() {
        answer(producer.send(true), true);
    }
}
