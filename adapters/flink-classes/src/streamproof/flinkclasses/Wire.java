package streamproof.flinkclasses;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Queue;
import java.util.function.Consumer;
import org.apache.flink.shaded.netty4.io.netty.buffer.ByteBuf;
import org.apache.flink.shaded.netty4.io.netty.buffer.Unpooled;
import org.apache.flink.shaded.netty4.io.netty.channel.ChannelHandler;
import org.apache.flink.shaded.netty4.io.netty.channel.ChannelHandlerContext;
import org.apache.flink.shaded.netty4.io.netty.channel.ChannelOutboundHandlerAdapter;
import org.apache.flink.shaded.netty4.io.netty.channel.ChannelPromise;
import org.apache.flink.shaded.netty4.io.netty.channel.embedded.EmbeddedChannel;

/** One end of a connection: Flink's handlers on an embedded channel. What they write waits, in bytes, for its delivery. */
final class Wire {
    /** A NettyMessage of Flink, and its bytes that are not delivered yet. */
    static final class Message {
        final Object content;
        final ByteBuf bytes;

        Message(Object content, ByteBuf bytes) {
            this.content = content;
            this.bytes = bytes;
        }

        String kind() {
            return content.getClass().getSimpleName();
        }

        int number(String field) {
            return (Integer) Reflect.get(content, field);
        }
    }

    final Deque<Message> sent = new ArrayDeque<>();
    private final EmbeddedChannel channel;
    private final EmbeddedChannel encoder = new EmbeddedChannel();
    private ChannelPromise writing;
    private int written;
    private boolean waits;

    /** The handlers are those of NettyProtocol, of which the first one encodes. `held`: kind of messages whose write is slow. */
    Wire(ChannelHandler[] handlers, String held, Consumer<Message> written) {
        handlers[0] = new ChannelOutboundHandlerAdapter() {
            @Override
            public void write(ChannelHandlerContext ctx, Object content, ChannelPromise promise) {
                Message message = new Message(content, encoded(content));
                if (message.kind().equals(held)) {
                    writing = promise;
                } else {
                    promise.setSuccess();
                }
                sent.add(message);
                Wire.this.written++;
                written.accept(message);
            }

            @Override
            public void flush(ChannelHandlerContext ctx) {} // nothing is written
        };
        channel = new EmbeddedChannel(handlers) {
            @Override
            public void runPendingTasks() { // by itself after each write
                if (!waits) {
                    super.runPendingTasks();
                }
            }
        };
        waits = true;
    }

    EmbeddedChannel channel() {
        return channel;
    }

    /** The slow write is done, so that the next one may begin. */
    void finishWriting() {
        ChannelPromise done = writing;
        writing = null;
        if (done != null) {
            done.setSuccess();
        }
        channel.checkException();
    }

    /** Runs what other threads have left for the thread of the connection, until that has written a message. */
    void run() {
        Queue<?> tasks = (Queue<?>) Reflect.get(channel.eventLoop(), "tasks");
        int before = written;
        while (!tasks.isEmpty() && written == before) {
            ((Runnable) tasks.remove()).run();
        }
        channel.checkException();
    }

    /** Runs all of it. */
    void runAll() {
        waits = false;
        channel.runPendingTasks();
        waits = true;
        channel.checkException();
    }

    /** So many bytes of a message arrive from the other end. */
    void receive(Message message, int bytes) {
        channel.pipeline().fireChannelRead(Unpooled.copiedBuffer(message.bytes.readSlice(bytes)));
        channel.checkException();
    }

    private ByteBuf encoded(Object content) {
        Reflect.call(content, "write", encoder, encoder.newPromise(), encoder.alloc());
        encoder.flush();
        ByteBuf bytes = Unpooled.buffer();
        for (ByteBuf part = encoder.readOutbound(); part != null; part = encoder.readOutbound()) {
            bytes.writeBytes(part);
            part.release();
        }
        return bytes;
    }
}
