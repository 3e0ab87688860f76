package streamproof.flinkclasses;

import java.io.IOException;
import java.util.function.IntConsumer;
import org.apache.flink.runtime.io.network.ConnectionID;
import org.apache.flink.runtime.io.network.ConnectionManager;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.consumer.SingleInputGate;

/**
 * A RemoteInputChannel whose threads may stop before two calls: `onSenderBacklog`, with which the network thread ends its work
 * on a message, and `notifyBufferAvailable`, with which any thread ends its work on a free buffer.
 */
final class RecordedChannel extends RemoteChannel {
    private final IntConsumer backlog;
    private final IntConsumer gained;

    RecordedChannel(SingleInputGate gate, ResultPartitionID partition, ConnectionID id, ConnectionManager connections,
            int exclusive, IntConsumer backlog, IntConsumer gained) {
        super(gate, partition, id, connections, exclusive);
        this.backlog = backlog;
        this.gained = gained;
    }

    @Override
    public void onSenderBacklog(int number) {
        backlog.accept(number);
    }

    /** The thread goes on. */
    void handleSenderBacklog(int number) throws IOException {
        super.onSenderBacklog(number);
    }

    @Override
    public void notifyBufferAvailable(int number) {
        gained.accept(number);
    }

    /** The thread goes on. */
    void handleBufferAvailable(int number) throws IOException {
        super.notifyBufferAvailable(number);
    }
}
