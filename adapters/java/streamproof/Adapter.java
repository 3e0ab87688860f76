package streamproof;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * An adapter for `streamproof drive`, without dependencies: copy this file, extend the class, and call {@link #serve} from `main`.
 *
 * <p>The messages are described in docs/how-to-drive.md. Values are those of JSON: null, Boolean, Long, String, List and Map. What
 * the implementation prints to standard output goes to standard error.
 */
public abstract class Adapter {
    /** The implementation does not do the action now, and nothing has changed. */
    public static final class Refused extends RuntimeException {
        public Refused(String because) {
            super(because);
        }
    }

    /** The adapter cannot make this call here, and nothing has changed. */
    public static final class Unsupported extends RuntimeException {
        public Unsupported(String because) {
            super(because);
        }
    }

    /** What happened in place of the call; what is null is as asked for, or unknown. */
    public record Happened(
            String event, Map<String, ?> args, Map<String, ?> picks, Map<String, ?> state, String process) {
        public Happened(String event, Map<String, ?> args) {
            this(event, args, null, null, null);
        }
    }

    private PrintStream out;
    private List<Map<String, Object>> held;

    /** Begins again in an initial state of the model; values of it by variable, or null. */
    protected abstract Map<String, ?> reset(Map<String, Object> parameters, long seed) throws Exception;

    /** Does an action; values after it by variable, a {@link Happened}, or null. Throws Refused or Unsupported. */
    protected abstract Object act(String action, Map<String, Object> args, Map<String, Object> picks) throws Exception;

    /** Values by variable, any part of the state; `of` are the variables wanted, null: all. */
    protected Map<String, ?> observe(List<Object> of) throws Exception {
        return Map.of();
    }

    /** Actions that the implementation takes by its own decision: it may refuse one that is possible. */
    protected Collection<String> own() {
        return List.of();
    }

    /** Actions that the implementation takes and the adapter does not report. */
    protected Collection<String> hidden() {
        return List.of();
    }

    /** Actions that cannot happen here; they are never asked for. */
    protected Collection<String> unsupported() {
        return List.of();
    }

    /**
     * Reports an action that happened without being asked for, from any thread; what is null is left out. During `reset`, they are
     * the first ones after it.
     */
    protected final synchronized void event(String event, Map<String, ?> args, Map<String, ?> state, String process) {
        Map<String, Object> message = fields("event", event, "args", args, "state", state, "process", process);
        if (held == null) {
            write(message);
        } else {
            held.add(message);
        }
    }

    /** Answers the calls of standard input on standard output, until `quit` or the end of input. */
    public final void serve() throws Exception {
        out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> call = Json.object(new Json(line).value());
            if (call.get("call").equals("quit")) {
                return;
            }
            boolean resets = call.get("call").equals("reset");
            synchronized (this) {
                held = resets ? new ArrayList<>() : null;
            }
            Map<String, Object> answer = answer(call);
            synchronized (this) {
                try {
                    write(numbered(call, answer));
                } catch (IllegalArgumentException error) { // a value that JSON does not have
                    write(numbered(call, fields("error", error.toString())));
                }
                if (resets) {
                    held.forEach(this::write);
                    held = null;
                }
            }
        }
    }

    private static Map<String, Object> numbered(Map<String, Object> call, Map<String, Object> answer) {
        Map<String, Object> found = fields("id", call.get("id"));
        found.putAll(answer);
        return found;
    }

    private Map<String, Object> answer(Map<String, Object> call) {
        try {
            switch ((String) call.get("call")) {
                case "reset":
                    Map<String, ?> state = reset(Json.object(call.get("parameters")), (Long) call.get("seed"));
                    return fields("ready", true, "own", own(), "hidden", hidden(), "unsupported", unsupported(), "state", state);
                case "do":
                    Map<String, Object> picks = call.get("picks") == null ? Map.of() : Json.object(call.get("picks"));
                    Object done = act((String) call.get("action"), Json.object(call.get("args")), picks);
                    if (done instanceof Happened h) {
                        return fields("accepted", true, "event", h.event, "args", h.args, "picks", h.picks, "state", h.state,
                                "process", h.process);
                    }
                    return fields("accepted", true, "state", done);
                default:
                    @SuppressWarnings("unchecked")
                    List<Object> of = (List<Object>) call.get("of");
                    return fields("state", observe(of));
            }
        } catch (Refused refused) {
            return fields("accepted", false, "because", refused.getMessage());
        } catch (Unsupported unsupported) {
            return fields("unsupported", unsupported.getMessage());
        } catch (Throwable error) {
            error.printStackTrace();
            return fields("error", error.toString());
        }
    }

    private static Map<String, Object> fields(Object... pairs) {
        Map<String, Object> found = new LinkedHashMap<>();
        for (int at = 0; at < pairs.length; at += 2) {
            if (pairs[at + 1] != null) {
                found.put((String) pairs[at], pairs[at + 1]);
            }
        }
        return found;
    }

    private synchronized void write(Map<String, ?> message) {
        StringBuilder text = new StringBuilder();
        Json.write(text, message);
        out.print(text.append('\n'));
        out.flush();
    }

    /** A reader and a writer of JSON without fractional numbers. */
    static final class Json {
        private final String text;
        private int at;

        Json(String text) {
            this.text = text;
        }

        @SuppressWarnings("unchecked")
        static Map<String, Object> object(Object value) {
            return (Map<String, Object>) value;
        }

        Object value() {
            char first = skipped();
            switch (first) {
                case '{':
                    Map<String, Object> object = new LinkedHashMap<>();
                    for (at++; skipped() != '}'; ) {
                        String name = string();
                        skipped();
                        at++; // the colon
                        object.put(name, value());
                        if (skipped() == ',') {
                            at++;
                            skipped();
                        }
                    }
                    at++;
                    return object;
                case '[':
                    List<Object> list = new ArrayList<>();
                    for (at++; skipped() != ']'; ) {
                        list.add(value());
                        if (skipped() == ',') {
                            at++;
                        }
                    }
                    at++;
                    return list;
                case '"':
                    return string();
                default:
                    int start = at;
                    while (at < text.length() && "+-.eE0123456789aflnrstu".indexOf(text.charAt(at)) >= 0) {
                        at++;
                    }
                    String word = text.substring(start, at);
                    return switch (word) {
                        case "true" -> true;
                        case "false" -> false;
                        case "null" -> null;
                        default -> Long.valueOf(word);
                    };
            }
        }

        private char skipped() {
            while (Character.isWhitespace(text.charAt(at))) {
                at++;
            }
            return text.charAt(at);
        }

        private String string() {
            StringBuilder found = new StringBuilder();
            for (at++; text.charAt(at) != '"'; at++) {
                char c = text.charAt(at);
                if (c != '\\') {
                    found.append(c);
                    continue;
                }
                c = text.charAt(++at);
                if (c == 'u') {
                    found.append((char) Integer.parseInt(text.substring(at + 1, at + 5), 16));
                    at += 4;
                } else {
                    int place = "bfnrt".indexOf(c);
                    found.append(place < 0 ? c : "\b\f\n\r\t".charAt(place));
                }
            }
            at++;
            return found.toString();
        }

        static void write(StringBuilder text, Object value) {
            if (value == null || value instanceof Boolean || value instanceof Long || value instanceof Integer
                    || value instanceof Short || value instanceof Byte) {
                text.append(value);
            } else if (value instanceof Map<?, ?> map) {
                String before = "{";
                for (Map.Entry<?, ?> entry : map.entrySet()) {
                    write(text.append(before), String.valueOf(entry.getKey()));
                    write(text.append(':'), entry.getValue());
                    before = ",";
                }
                text.append(map.isEmpty() ? "{}" : "}");
            } else if (value instanceof Collection<?> list) {
                String before = "[";
                for (Object each : list) {
                    write(text.append(before), each);
                    before = ",";
                }
                text.append(list.isEmpty() ? "[]" : "]");
            } else if (value instanceof String || value instanceof Enum<?>) {
                text.append('"');
                value.toString().chars().forEach(c -> {
                    if (c == '"' || c == '\\') {
                        text.append('\\').append((char) c);
                    } else if (c < ' ' || c > '~') {
                        text.append(String.format("\\u%04x", c));
                    } else {
                        text.append((char) c);
                    }
                });
                text.append('"');
            } else {
                throw new IllegalArgumentException("no value of JSON: " + value.getClass());
            }
        }
    }
}
