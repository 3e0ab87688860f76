package streamproof.flinkclasses;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.flink.runtime.io.network.buffer.Buffer;
import org.apache.flink.runtime.io.network.buffer.BufferListener;
import org.apache.flink.runtime.io.network.buffer.BufferPool;
import org.apache.flink.runtime.io.network.buffer.NetworkBufferPool;

/** The LocalBufferPool of an input gate, of which other channels have all buffers that the channel does not have. */
final class GatePool {
    /** Buffers of the other channels. */
    final Deque<Buffer> others = new ArrayDeque<>();

    private final NetworkBufferPool network;
    private final int size;
    private final Consumer<Boolean> offered;
    private BufferPool pool;

    /** `offered` is called when a listener was offered a buffer: whether it has taken it. */
    GatePool(NetworkBufferPool network, int size, Consumer<Boolean> offered) {
        this.network = network;
        this.size = size;
        this.offered = offered;
    }

    BufferPool create() throws IOException {
        pool = network.createBufferPool(size, size);
        takeAll();
        return Fault.wrap(BufferPool.class, Reflect.around(BufferPool.class, pool, Map.of(
                "addBufferListener", args -> pool.addBufferListener(watched((BufferListener) args[0])))));
    }

    private BufferListener watched(BufferListener listener) {
        return Fault.wrap(BufferListener.class, Reflect.around(BufferListener.class, listener, Map.of(
                "notifyBufferAvailable", args -> {
                    boolean used = listener.notifyBufferAvailable((Buffer) args[0]);
                    offered.accept(used);
                    return used;
                })));
    }

    /** The other channels take what is in the pool. */
    void takeAll() {
        for (Buffer buffer = request(); buffer != null; buffer = request()) {
            others.push(buffer);
        }
    }

    private Buffer request() {
        return pool == null ? null : pool.requestBuffer();
    }

    /** The other channels return so many buffers, as far as they have them. */
    void give(int number) {
        for (int i = 0; i < number && !others.isEmpty(); i++) {
            others.pop().recycleBuffer();
        }
    }
}
