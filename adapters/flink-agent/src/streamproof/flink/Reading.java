package streamproof.flink;

import java.util.Collections;
import java.util.Map;
import java.util.Optional;
import java.util.WeakHashMap;
import java.util.concurrent.atomic.AtomicBoolean;

/** What a call was given and returned, and what the counters of its channel are, read out of Flink's objects. */
final class Reading {
    /** The channel that reads a subpartition, by subpartition, from the moment at which it has connected. */
    private static final Map<Object, String> CHANNELS = Collections.synchronizedMap(new WeakHashMap<>());

    /** The task of each gate's pool; other pools are not recorded. */
    private static final Map<Object, String> GATES = Collections.synchronizedMap(new WeakHashMap<>());

    private Reading() {}

    /** Puts all fields of a record but those of time and place. False where the call is not one to record. */
    static boolean into(Line line, String event, Object self, Object[] given, Object result) throws Exception {
        switch (event) {
            case "p.enqueue":
                return enqueue(line, self, given, result);
            case "p.cancel":
                line.of(given[0]);
                return true;
            case "p.backlog_announce":
                line.put("backlog", given[1]);
                return reader(line, given[0]);
            case "g.pool":
                GATES.put(given[0], String.valueOf(Fields.call(self, "getOwningTaskName")));
                line.put("task", GATES.get(given[0])).put("gate", Fields.call(self, "getGateIndex"));
                return pool(line, given[0]);
            case "g.float_recycle":
                if (!GATES.containsKey(self)) {
                    return false;
                }
                line.put("task", GATES.get(self));
                return pool(line, self);
            default:
                return event.startsWith("p.")
                        ? producer(line, event, self, given, result)
                        : consumer(line, event, self, given, result);
        }
    }

    private static boolean enqueue(Line line, Object self, Object[] given, Object result) throws Exception {
        line.of(CHANNELS.getOrDefault(self, ""));
        Object info = Fields.get(self, "subpartitionInfo");
        line.put("subpartition", Fields.call(info, "getPartitionIdx") + "," + Fields.call(info, "getSubPartitionIdx"));
        line.put("partition", Fields.call(Fields.get(self, "parent"), "getPartitionId"));
        // Flink 1.17 returns whether the buffer was taken.
        Object taken = result instanceof Boolean ? ((Boolean) result ? Integer.MAX_VALUE : -1) : result;
        line.put("type", Fields.call(given[0], "getDataType")).put("ret", taken);
        return queue(line, self);
    }

    private static boolean producer(Line line, String event, Object self, Object[] given, Object result)
            throws Exception {
        switch (event) {
            case "p.request":
                Object view = Fields.get(self, "subpartitionView");
                Object parent = view == null ? null : Fields.find(view, "parent");
                if (parent != null) {
                    CHANNELS.put(parent, String.valueOf(Fields.get(self, "receiverId")));
                }
                line.put("initial", Fields.get(self, "initialCredit")).put("partition", given[1]);
                line.put("subpartitions", given[2]);
                break;
            case "p.credit_add":
                line.put("n", given[0]);
                break;
            case "p.send":
                sent(line, result);
                break;
            default:
                break;
        }
        return reader(line, self);
    }

    private static void sent(Line line, Object result) throws Exception {
        if (result == null) {
            line.put("got", false);
            return;
        }
        Object buffer = Fields.call(result, "buffer");
        line.put("seq", Fields.call(result, "getSequenceNumber")).put("backlog", Fields.call(result, "buffersInBacklog"));
        line.put("next", Fields.get(result, "nextDataType"));
        line.put("type", Fields.call(buffer, "getDataType")).put("bytes", Fields.call(buffer, "readableBytes"));
        Object parts = Fields.find(buffer, "partialBuffers");
        if (parts != null) {
            line.put("partials", Fields.call(parts, "size"));
        }
    }

    private static boolean reader(Line line, Object reader) throws Exception {
        line.of(Fields.get(reader, "receiverId")).put("credits", Fields.get(reader, "numCreditsAvailable"));
        line.put("registered", Fields.get(reader, "isRegisteredAsAvailable"));
        Object view = Fields.get(reader, "subpartitionView");
        Object parent = view == null ? null : Fields.find(view, "parent");
        return parent == null || Fields.find(parent, "buffersInBacklog") == null || queue(line, parent);
    }

    private static boolean queue(Line line, Object subpartition) throws Exception {
        line.put("backlog_now", Fields.get(subpartition, "buffersInBacklog"));
        line.put("queue", Fields.call(Fields.get(subpartition, "buffers"), "size"));
        line.flag("blocked", (Boolean) Fields.get(subpartition, "isBlocked"));
        return true;
    }

    private static boolean pool(Line line, Object pool) throws Exception {
        line.put("pool_size", Fields.call(pool, "getNumBuffers"));
        line.put("pool_requested", Fields.get(pool, "numberOfRequestedMemorySegments"));
        line.put("pool_free", Fields.call(Fields.get(pool, "availableMemorySegments"), "size"));
        line.put("pool_listeners", Fields.call(Fields.get(pool, "registeredListeners"), "size"));
        return true;
    }

    private static boolean consumer(Line line, String event, Object self, Object[] given, Object result)
            throws Exception {
        Object buffers = Fields.find(self, "bufferManager");
        Object channel = buffers == null ? Fields.get(self, "inputChannel") : self;
        if (!channel.getClass().getName().endsWith(".RemoteInputChannel")) {
            return false;  // a channel that restores its state has a buffer manager, too
        }
        switch (event) {
            case "c.excl_request":
            case "c.credit_gain":
                line.put("n", given[0]);
                break;
            case "c.request":
                request(line, channel);
                break;
            case "c.buffer_taken":
                line.put("got", result != null);
                break;
            case "c.recv":
                line.put("seq", given[1]).put("backlog", given[2]);
                line.put("type", Fields.call(given[0], "getDataType")).put("bytes", Reading.size(given[0]));
                break;
            case "c.recv_empty":
                line.put("seq", given[0]).put("backlog", given[1]);
                break;
            case "c.backlog":
                line.put("backlog", given[0]);
                break;
            case "c.float_request":
                line.put("want", given[0]).put("got", result);
                break;
            case "c.float_offered":
                line.put("taken", result);
                break;
            case "c.credit_announce":
                line.put("n", result);
                break;
            case "c.poll":
                polled(line, (Optional<?>) result);
                break;
            default:
                break;
        }
        return counters(line, channel, buffers == null ? self : buffers);
    }

    private static void request(Line line, Object channel) throws Exception {
        Object info = Fields.get(channel, "channelInfo");
        line.put("initial", Fields.get(channel, "initialCredit"));
        line.put("task", Fields.call(Fields.get(channel, "inputGate"), "getOwningTaskName"));
        line.put("gate", Fields.call(info, "getGateIdx")).put("idx", Fields.call(info, "getInputChannelIdx"));
        line.put("partition", Fields.get(channel, "partitionId"));
        Object several = Fields.find(channel, "consumedSubpartitionIndexSet");
        line.put("subpartitions", several == null ? Fields.get(channel, "consumedSubpartitionIndex") : several);
    }

    private static void polled(Line line, Optional<?> result) throws Exception {
        if (result.isEmpty()) {
            line.put("got", false);
            return;
        }
        Object buffer = Fields.call(result.get(), "buffer");
        line.put("seq", Fields.call(result.get(), "getSequenceNumber")).put("next", Fields.get(result.get(), "nextDataType"));
        line.put("type", Fields.call(buffer, "getDataType")).put("bytes", size(buffer));
    }

    /** The size of a buffer, which the task may have consumed already. */
    private static Object size(Object buffer) throws Exception {
        return Fields.call(buffer, "getSize");
    }

    private static boolean counters(Line line, Object channel, Object buffers) throws Exception {
        Object free = Fields.get(buffers, "bufferQueue");
        line.of(Fields.get(channel, "id")).put("unannounced", Fields.get(channel, "unannouncedCredit"));
        line.put("excl", Fields.call(Fields.get(free, "exclusiveBuffers"), "size"));
        line.put("float", Fields.call(Fields.get(free, "floatingBuffers"), "size"));
        line.put("required", Fields.get(buffers, "numRequiredBuffers"));
        line.put("waiting", Fields.get(buffers, "isWaitingForFloatingBuffers"));
        line.put("queued", Fields.call(Fields.get(channel, "receivedBuffers"), "size"));
        line.put("next_seq", Fields.get(channel, "expectedSequenceNumber"));
        line.flag("released", ((AtomicBoolean) Fields.get(channel, "isReleased")).get());
        return true;
    }
}
