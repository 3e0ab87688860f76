package streamproof.flinkclasses;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.flink.core.memory.MemorySegmentFactory;
import org.apache.flink.runtime.checkpoint.CheckpointOptions;
import org.apache.flink.runtime.checkpoint.CheckpointType;
import org.apache.flink.runtime.checkpoint.channel.ChannelStateWriter;
import org.apache.flink.runtime.io.network.NetworkSequenceViewReader;
import org.apache.flink.runtime.io.network.TaskEventPublisher;
import org.apache.flink.runtime.io.network.api.CheckpointBarrier;
import org.apache.flink.runtime.io.network.api.serialization.EventSerializer;
import org.apache.flink.runtime.io.network.buffer.Buffer;
import org.apache.flink.runtime.io.network.buffer.BufferBuilder;
import org.apache.flink.runtime.io.network.buffer.BufferConsumer;
import org.apache.flink.runtime.io.network.buffer.FreeingBufferRecycler;
import org.apache.flink.runtime.io.network.partition.BufferAvailabilityListener;
import org.apache.flink.runtime.io.network.partition.PipelinedResultPartition;
import org.apache.flink.runtime.io.network.partition.PipelinedSubpartition;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.ResultPartitionManager;
import org.apache.flink.runtime.io.network.partition.ResultPartitionProvider;
import org.apache.flink.runtime.io.network.partition.ResultPartitionType;
import org.apache.flink.runtime.io.network.partition.ResultSubpartition;
import org.apache.flink.runtime.io.network.partition.ResultSubpartitionView;
import org.apache.flink.runtime.state.CheckpointStorageLocationReference;
import org.apache.flink.shaded.netty4.io.netty.channel.ChannelHandler;
import org.apache.flink.util.concurrent.ScheduledExecutor;

/**
 * The producer's end of a channel: PartitionRequestQueue with its handlers, CreditBasedSequenceNumberingViewReader, and a
 * PipelinedSubpartition of a PipelinedResultPartition at a ResultPartitionManager. The producing task is written here: it
 * writes one byte to each buffer when it adds it, and more, flushes and finishes a buffer only before it is to be sent.
 */
final class CreditProducer {
    private static final int TIMEOUT = 1; // ms

    private final ResultPartitionID id = new ResultPartitionID();
    private final ResultPartitionManager partitions;
    private final PipelinedResultPartition partition;
    private final PipelinedSubpartition subpartition;
    private final Object queue;
    private final Wire server;
    private final Deque<Wire.Message> responses = new ArrayDeque<>();
    private final Deque<Wire.Message> errors = new ArrayDeque<>();
    private final List<Map.Entry<String, Map<String, Object>>> done = new ArrayList<>();
    private Object reader;
    private BufferBuilder open;
    private int barriers;
    private int cancelled;
    private boolean created;
    private boolean wasRegistered;
    private boolean closed;

    // The subpartition before the present call.
    private int data;
    private Object last;
    private int position;

    CreditProducer(int exclusive) throws Exception {
        partitions = Reflect.make(ResultPartitionManager.class, TIMEOUT, Reflect.stub(ScheduledExecutor.class, Map.of()));
        ResultSubpartition[] subpartitions = new ResultSubpartition[1];
        partition = Reflect.make(PipelinedResultPartition.class, "task", 0, id, ResultPartitionType.PIPELINED_BOUNDED,
                subpartitions, 1, partitions);
        subpartition = Reflect.make(PipelinedSubpartition.class, 0, exclusive, partition);
        subpartitions[0] = subpartition;
        subpartition.setChannelStateWriter(ChannelStateWriter.NO_OP);
        ResultPartitionProvider provider = Reflect.around(ResultPartitionProvider.class, partitions, Map.of(
                "createSubpartitionViewOrRegisterListener", args -> {
                    reader = Reflect.argument(BufferAvailabilityListener.class, args);
                    Optional<?> view = (Optional<?>) Reflect.call(partitions, "createSubpartitionViewOrRegisterListener", args);
                    return view;
                }));
        Object protocol = Reflect.make(Class.forName("org.apache.flink.runtime.io.network.netty.NettyProtocol"), provider,
                Reflect.stub(TaskEventPublisher.class, Map.of()));
        ChannelHandler[] handlers = (ChannelHandler[]) Reflect.call(protocol, "getServerChannelHandlers");
        queue = handlers[handlers.length - 1];
        server = new Wire(handlers, "BufferResponse", this::written);
    }

    ResultPartitionID partition() {
        return id;
    }

    Deque<Wire.Message> responses() {
        return responses;
    }

    /** Messages that the partition was not found. */
    Deque<Wire.Message> errors() {
        return errors;
    }

    boolean created() {
        return created;
    }

    boolean isClosed() {
        return closed;
    }

    boolean hasReader() {
        return !((Map<?, ?>) Reflect.get(queue, "allReaders")).isEmpty();
    }

    private boolean isQueued() {
        return !((Collection<?>) Reflect.get(queue, "availableReaders")).isEmpty();
    }

    private List<BufferConsumer> queued() {
        List<BufferConsumer> all = new ArrayList<>();
        for (Object one : (Iterable<?>) Reflect.get(subpartition, "buffers")) {
            all.add((BufferConsumer) Reflect.call(one, "getBufferConsumer"));
        }
        return all;
    }

    private int priorities() {
        return (Integer) Reflect.call(Reflect.get(subpartition, "buffers"), "getNumPriorityElements");
    }

    /** Variables of the model, of this end and of the messages that it has sent. */
    Map<String, Object> state() {
        Map<String, Object> state = new LinkedHashMap<>();
        List<Object> first = new ArrayList<>();
        List<Object> rest = new ArrayList<>();
        for (BufferConsumer buffer : queued()) {
            (first.size() < priorities() ? first : rest).add(buffer.getDataType().name());
        }
        state.put("buffers", rest);
        state.put("priority_buffers", first);
        state.put("buffers_in_backlog", Reflect.get(subpartition, "buffersInBacklog"));
        state.put("sequence_number", Reflect.get(subpartition, "sequenceNumber"));
        state.put("total_number_of_buffers", Reflect.get(subpartition, "totalNumberOfBuffers"));
        state.put("is_blocked", Reflect.get(subpartition, "isBlocked"));
        state.put("is_finished", Reflect.get(subpartition, "isFinished"));
        state.put("subpartition_released", subpartition.isReleased());
        state.put("reader_created", created);
        state.put("num_credits_available", created ? Reflect.get(reader, "numCreditsAvailable") : 0);
        state.put("is_registered_as_available", created && (Boolean) Reflect.get(reader, "isRegisteredAsAvailable"));
        state.put("in_all_readers", hasReader());
        state.put("in_available_readers", isQueued());
        state.put("reader_released", wasRegistered && !hasReader());
        state.put("cancel_requests", cancelled);
        List<Object> messages = new ArrayList<>();
        for (Wire.Message message : responses) {
            boolean response = message.kind().equals("BufferResponse");
            Map<String, Object> fields = new LinkedHashMap<>();
            fields.put("message", message.kind());
            fields.put("data_type", response ? Reflect.get(message.content, "dataType").toString() : "DATA_BUFFER");
            fields.put("sequence_number", response ? message.number("sequenceNumber") : 0);
            fields.put("size", response ? Math.min(message.number("bufferSize"), 1) : 0);
            fields.put("backlog", message.number("backlog"));
            fields.put("partial_buffers", 1);
            messages.add(fields);
        }
        state.put("responses", messages);
        return state;
    }

    // --- the task

    boolean add(Buffer.DataType type) throws IOException {
        finish();
        BufferConsumer buffer;
        if (type.isBuffer()) {
            open = new BufferBuilder(MemorySegmentFactory.allocateUnpooledSegment(64), FreeingBufferRecycler.INSTANCE);
            write();
            buffer = open.createBufferConsumerFromBeginning();
        } else {
            CheckpointStorageLocationReference place = CheckpointStorageLocationReference.getDefault();
            CheckpointOptions options = type.hasPriority() ? CheckpointOptions.unaligned(CheckpointType.CHECKPOINT, place)
                    : type == Buffer.DataType.ALIGNED_CHECKPOINT_BARRIER
                            ? CheckpointOptions.alignedNoTimeout(CheckpointType.CHECKPOINT, place)
                            : CheckpointOptions.alignedWithTimeout(CheckpointType.CHECKPOINT, place, 1000);
            buffer = EventSerializer.toBufferConsumer(new CheckpointBarrier(++barriers, 0, options), type.hasPriority());
            if (buffer.getDataType() != type) {
                throw new IllegalArgumentException("no event of type " + type);
            }
        }
        return subpartition.add(buffer, 0) >= 0;
    }

    private void write() {
        open.appendAndCommit(ByteBuffer.wrap(new byte[] {1}));
    }

    private void finish() {
        if (open != null) {
            open.finish();
            open.close();
            open = null;
        }
    }

    void releaseSubpartition() {
        Family.require(!queued().isEmpty() && !subpartition.isReleased(), "nothing is queued");
        subpartition.release();
    }

    // --- the reader

    /** The partition is registered: a reader that waits for it gets its view. */
    void register() throws IOException {
        Family.require(created && !hasReader() && !wasRegistered, "no reader waits for the partition");
        Family.require(!subpartition.isReleased(), "a partition that was released is not registered");
        partitions.registerResultPartition(partition);
        if (!hasReader()) {
            return;
        }
        wasRegistered = true;
        Reflect.set(reader, "subpartitionView", Fault.wrap(ResultSubpartitionView.class,
                (ResultSubpartitionView) Reflect.get(reader, "subpartitionView")));
        Object view = Reflect.get(subpartition, "readView");
        Reflect.set(view, "availabilityListener", Fault.wrap(BufferAvailabilityListener.class,
                (BufferAvailabilityListener) Reflect.get(view, "availabilityListener")));
        @SuppressWarnings("unchecked")
        Map<Object, Object> all = (Map<Object, Object>) Reflect.get(queue, "allReaders");
        all.replaceAll((key, value) -> Fault.wrap(NetworkSequenceViewReader.class, (NetworkSequenceViewReader) value));
    }

    void timeOut() throws InterruptedException {
        Family.require(created && !hasReader() && !wasRegistered, "no reader waits for the partition");
        Thread.sleep(2 * TIMEOUT);
        Reflect.call(partitions, "checkRequestPartitionListeners");
        created = errors.isEmpty();
    }

    /** A message of the consumer arrives. What the reader sends at once is returned, as actions of the model. */
    List<Map.Entry<String, Map<String, Object>>> receive(Wire.Message message) {
        begin();
        created |= message.kind().equals("PartitionRequest");
        server.receive(message, message.bytes.readableBytes());
        return end();
    }

    List<Map.Entry<String, Map<String, Object>>> cancel(Wire.Message message) {
        boolean before = hasReader();
        cancelled++;
        receive(message);
        return before && !hasReader() ? List.of(Map.entry("release_reader", Map.of())) : List.of();
    }

    /** The connection is lost. */
    void close() {
        Family.require(hasReader(), "there is no reader");
        Reflect.call(queue, "releaseAllResources");
        closed = true;
    }

    /** The reader goes on: the write before is done, or a notification arrives that the task has written or flushed. */
    List<Map.Entry<String, Map<String, Object>>> send(boolean unfinished) {
        if (closed && cancelled > 0) {
            throw new Family.Unsupported("the connection is lost, which the model takes for a late request to cancel");
        }
        Family.require(created && wasRegistered && !closed, "there is no reader");
        Family.require(!subpartition.isReleased(), "the subpartition is released");
        int credits = (Integer) Reflect.get(reader, "numCreditsAvailable");
        if (credits == 0 && responses.stream().anyMatch(one -> one.kind().equals("BacklogAnnouncement"))) {
            throw new Family.Unsupported("the model announces a backlog only when none is on its way");
        }
        List<BufferConsumer> all = queued();
        if (all.size() == 1 && all.get(0).isBuffer() && !(Boolean) Reflect.get(subpartition, "isBlocked")) {
            if (!all.get(0).isDataAvailable()) {
                if (open == null) {
                    throw new Family.Unsupported("an empty buffer stays in the queue until the task adds another one");
                }
                write();
            }
            if (!unfinished && (Integer) Reflect.get(subpartition, "sequenceNumber") % 2 == 0) {
                finish();
            }
            subpartition.flush();
        }
        begin();
        if (isQueued()) {
            server.finishWriting();
        } else {
            server.run();
        }
        List<Map.Entry<String, Map<String, Object>>> sent = end();
        if (sent.isEmpty() && !hasReader()) {
            throw new Family.Unsupported("no notification of a cancelled reader is on its way");
        }
        if (sent.isEmpty() && credits == 0 && !all.isEmpty() && all.get(0).isBuffer() && all.get(0).isDataAvailable()) {
            throw new Family.Unsupported("the first buffer is not empty, and there is no credit for it");
        }
        Family.require(!sent.isEmpty(), "the reader sends nothing");
        if (queued().size() == 1 && (Integer) Reflect.get(subpartition, "sequenceNumber") % 3 == 0) {
            finish(); // perhaps without more data
        }
        return sent;
    }

    private void begin() {
        int sent = (Integer) Reflect.get(subpartition, "sequenceNumber");
        List<BufferConsumer> all = queued();
        boolean bounded = sent >= (Long) Reflect.get(subpartition, "totalNumberOfBuffers"); // of messages, as the model is
        if (bounded && open != null && all.size() == 1) {
            if (!all.get(0).isDataAvailable()) {
                write();
            }
            finish();
        }
        done.clear();
        remember();
    }

    private List<Map.Entry<String, Map<String, Object>>> end() {
        if (!isQueued()) {
            server.finishWriting();
        }
        return new ArrayList<>(done);
    }

    private void remember() {
        List<BufferConsumer> all = queued();
        data = (int) all.stream().filter(BufferConsumer::isBuffer).count();
        last = all.isEmpty() ? null : all.get(all.size() - 1);
        position = last == null ? 0 : (Integer) Reflect.get(last, "currentReaderPosition");
    }

    /** The reader, or the queue, has written a message. */
    private void written(Wire.Message message) {
        server.sent.clear();
        if (message.kind().equals("ErrorResponse")) {
            errors.add(message);
            return;
        }
        responses.add(message);
        int backlog = message.number("backlog");
        if (message.kind().equals("BacklogAnnouncement")) {
            done.add(Map.entry("announce_backlog", Map.of("backlog", backlog)));
            return;
        }
        int before = data;
        Object lastBefore = last;
        int positionBefore = position;
        remember();
        boolean isData = ((Buffer.DataType) Reflect.get(message.content, "dataType")).isBuffer();
        boolean unfinished = isData && last == lastBefore && position > positionBefore;
        Map<String, Object> args = new LinkedHashMap<>();
        args.put("size", Math.min(message.number("bufferSize"), 1));
        args.put("backlog", backlog);
        args.put("skipped", before - data - (isData && !unfinished ? 1 : 0));
        if (isData) {
            args.put("unfinished", unfinished);
        }
        args.put("more", isQueued());
        done.add(Map.entry(isData ? "send_data" : "send_event", args));
    }
}
