package streamproof.flinkclasses;

import org.apache.flink.metrics.SimpleCounter;
import org.apache.flink.runtime.checkpoint.channel.ChannelStateWriter;
import org.apache.flink.runtime.io.network.ConnectionID;
import org.apache.flink.runtime.io.network.ConnectionManager;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.ResultSubpartitionIndexSet;
import org.apache.flink.runtime.io.network.partition.consumer.RemoteInputChannel;
import org.apache.flink.runtime.io.network.partition.consumer.SingleInputGate;

/** Flink's RemoteInputChannel with the constructor of versions before 2.3. */
class RemoteChannel extends RemoteInputChannel {
    RemoteChannel(SingleInputGate gate, ResultPartitionID partition, ConnectionID id, ConnectionManager connections, int exclusive) {
        super(gate, 0, partition, new ResultSubpartitionIndexSet(0), id, connections, 0, 1_000_000, 1, exclusive,
                new SimpleCounter(), new SimpleCounter(), ChannelStateWriter.NO_OP);
    }
}
