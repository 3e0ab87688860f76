package streamproof.flink;

import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;

/** The trace of this process. Called by the recording methods that {@link Wrapping} makes. */
public final class Recorder {
    private static final AtomicLong MOMENT = new AtomicLong();
    private static BufferedWriter out;
    private static String process;

    private Recorder() {}

    static void open(Path file, String name) throws IOException {
        out = Files.newBufferedWriter(file);
        process = name;
        Runtime.getRuntime().addShutdownHook(new Thread(Recorder::close, "credit-agent"));
    }

    /** The beginning of a call: its place in the order of this process, and the clock. */
    public static long[] begin() {
        return new long[] {MOMENT.getAndIncrement(), System.nanoTime()};
    }

    /** A call has returned; what there is to say of it becomes one line. Never throws: Flink must not notice. */
    public static void end(String event, long[] begun, Object self, Object[] given, Object result) {
        try {
            Line line = new Line();
            if (!Reading.into(line, event, self, given, result)) {
                return;
            }
            write(event, begun, line);
        } catch (Throwable failure) {
            System.err.println("credit-agent: " + event + " is not recorded: " + failure);
        }
    }

    // Places are drawn under the lock, so that the order of the lines is that of the places.
    private static synchronized void write(String event, long[] begun, Line line) throws IOException {
        if (out == null) {
            return;
        }
        long done = MOMENT.getAndIncrement();
        long clock = System.nanoTime();
        Line whole = new Line();
        whole.put("trace", line.channel()).put("process", process).put("seq", done).put("event", event);
        Line args = new Line();
        // Tasks of one name have threads of one name: the number tells them apart.
        Thread thread = Thread.currentThread();
        args.put("ch", line.channel()).put("th", thread.getName() + " [" + thread.getId() + "]");
        args.put("ns", clock).put("ns0", begun[1]).put("q0", begun[0]);
        out.write(whole.with("args", args.and(line)).toString());
        out.write('\n');
        // Every line at once: a TaskManager that is killed leaves what it did.
        out.flush();
    }

    private static synchronized void close() {
        try {
            out.close();
            out = null;
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }
}
