package streamproof.flinkclasses;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.runtime.io.network.buffer.Buffer;
import org.apache.flink.runtime.io.network.buffer.BufferPool;
import org.apache.flink.runtime.io.network.buffer.BufferPoolFactory;
import org.apache.flink.runtime.io.network.buffer.NetworkBufferPool;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/** The model `buffer_shares`, variant `divided`: NetworkBufferPool and its LocalBufferPools. */
final class BufferFamily extends Family {
    private NetworkBufferPool network;
    private BufferPoolFactory global;
    private BufferPool[] inside;
    private BufferPool[] pools;
    private int creating;
    private final List<Deque<Buffer>> held = new ArrayList<>();
    private int required;
    private int most;

    @Override
    void reset(JsonNode parameters, String variant) {
        network = new NetworkBufferPool(parameters.get("buffers").asInt(), 16);
        Reflect.order(network, "resizableBufferPools", Comparator.comparing(this::number));
        global = Fault.wrap(BufferPoolFactory.class, network);
        required = parameters.get("required").asInt();
        most = parameters.get("most").asInt();
        pools = new BufferPool[parameters.get("pools").asInt()];
        inside = new BufferPool[pools.length];
        held.clear();
        for (int p = 0; p < pools.length; p++) {
            held.add(new ArrayDeque<>());
        }
    }

    /** The number of a pool; the one that is being created is not known yet. */
    private int number(BufferPool pool) {
        for (int p = 0; p < pools.length; p++) {
            if (inside[p] == pool) {
                return p;
            }
        }
        return creating;
    }

    @Override
    Map<String, Object> state() {
        List<Object> created = new ArrayList<>();
        List<Object> size = new ArrayList<>();
        List<Object> inUse = new ArrayList<>();
        for (int p = 0; p < pools.length; p++) {
            created.add(pools[p] != null);
            size.add(pools[p] == null ? 0 : pools[p].getNumBuffers());
            inUse.add(held.get(p).size());
        }
        return new LinkedHashMap<>(Map.of("created", created, "size", size, "held", inUse));
    }

    @Action
    void create(int p) throws IOException {
        require(pools[p] == null, "there is pool " + p);
        try {
            creating = p;
            inside[p] = global.createBufferPool(required, most);
            pools[p] = Fault.wrap(BufferPool.class, inside[p]);
        } catch (IOException e) {
            throw new Refused(e.getMessage());
        }
    }

    @Action
    void destroy(int p) {
        require(pools[p] != null && held.get(p).isEmpty(), "pool " + p + " is in use");
        pools[p].lazyDestroy();
        pools[p] = null;
        inside[p] = null;
    }

    @Action
    void request(int p) {
        require(pools[p] != null, "there is no pool " + p);
        Buffer buffer = pools[p].requestBuffer();
        boolean allowed = held.get(p).size() < pools[p].getNumBuffers();
        if (buffer == null && allowed && network.getNumberOfAvailableMemorySegments() == 0) {
            throw new Unsupported("the free buffers are in the lists of other pools");
        }
        require(buffer != null, "the pool has no buffer");
        held.get(p).push(buffer);
    }

    @Action
    void recycle(int p) {
        require(!held.get(p).isEmpty(), "no buffer is in use");
        held.get(p).pop().recycleBuffer();
    }
}
