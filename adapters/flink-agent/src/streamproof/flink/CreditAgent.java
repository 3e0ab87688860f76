package streamproof.flink;

import java.io.IOException;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.ProtectionDomain;

/**
 * Records the calls of Flink's credit-based flow control in a TaskManager.
 *
 * <p>Use: {@code -javaagent:credit-agent.jar=FOLDER[,NAME]}. One file, {@code FOLDER/NAME.trace.ndjson}, is written by each
 * process; NAME is {@code pid-N} unless given. Each line is one call that returned, in the form of streamproof's event log.
 */
public final class CreditAgent {
    private CreditAgent() {}

    /** Called by the JVM before Flink starts. */
    public static void premain(String arguments, Instrumentation instrumentation) throws IOException {
        String[] given = (arguments == null ? "" : arguments).split(",", 2);
        Path folder = Path.of(given[0].isEmpty() ? "." : given[0]);
        String name = given.length > 1 ? given[1] : "pid-" + ProcessHandle.current().pid();
        Files.createDirectories(folder);
        Recorder.open(folder.resolve(name + ".trace.ndjson"), name);
        instrumentation.addTransformer(new HookedClasses());
    }

    /** Rewrites the classes that have hooked methods as they are loaded. */
    private static final class HookedClasses implements ClassFileTransformer {
        @Override
        public byte[] transform(
                ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] code) {
            if (name == null || !Hook.CLASSES.contains(name)) {
                return null;
            }
            try {
                return Wrapping.of(name, code);
            } catch (Throwable failure) {
                // A transformer that throws is ignored without a word, and the trace would be incomplete.
                System.err.println("credit-agent: " + name + " is not recorded: " + failure);
                return null;
            }
        }
    }
}
