package streamproof.flinkclasses;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Parameter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

/** Classes of Flink behind the actions of one model: a method for each action, with the action's name and arguments. */
abstract class Family {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Fields of the answer to the present call, besides `accepted`: `picks`, `args`, `event`. */
    protected final Map<String, Object> otherwise = new LinkedHashMap<>();

    private final List<Map<String, Object>> earlier = new ArrayList<>();
    private final List<Map<String, Object>> events = new ArrayList<>();

    /** Creates the objects of Flink, in an initial state of the model. */
    abstract void reset(JsonNode parameters, String variant) throws Exception;

    /** Variables of the model, or parts of them, as the objects have them. */
    abstract Map<String, Object> state() throws Exception;

    /** Actions that the classes take by their own decision. */
    List<String> own() {
        return List.of();
    }

    /** Actions that the classes do not have. */
    List<String> unsupported() {
        return List.of();
    }

    /** The action is refused: the classes, or what surrounds them, do not do it now. */
    static final class Refused extends RuntimeException {
        private static final long serialVersionUID = 1;

        Refused(String why) {
            super(why);
        }
    }

    /** The classes keep the action from happening by something that the model leaves out: nothing is concluded. */
    static final class Unsupported extends RuntimeException {
        private static final long serialVersionUID = 1;

        Unsupported(String why) {
            super(why);
        }
    }

    static void require(boolean condition, String why) {
        if (!condition) {
            throw new Refused(why);
        }
    }

    /** The present call has also taken an action that nobody asked for. */
    protected void happened(String action, Map<String, Object> args) {
        events.add(new LinkedHashMap<>(Map.of("event", action, "args", args)));
    }

    /** The same, for an action before the one that was asked for. */
    protected void happenedBefore(String action, Map<String, Object> args) {
        earlier.add(new LinkedHashMap<>(Map.of("event", action, "args", args)));
    }

    /** The lines that answer the present call: its answer, with events before and after it. */
    List<Map<String, Object>> lines(Map<String, Object> answer) {
        List<Map<String, Object>> lines = new ArrayList<>(earlier);
        lines.add(answer);
        lines.addAll(events);
        earlier.clear();
        events.clear();
        return lines;
    }

    void answerReset(JsonNode call, Map<String, Object> answer) {
        try {
            reset(call.get("parameters"), call.path("variant").asText(null));
            answer.put("ready", true);
            List<String> own = own();
            if (!own.isEmpty()) {
                answer.put("own", own);
            }
            if (!unsupported().isEmpty()) {
                answer.put("unsupported", unsupported());
            }
            answer.put("state", state());
        } catch (Exception | Error e) {
            answer.put("error", text(e));
        }
    }

    void answerObserve(Map<String, Object> answer) {
        try {
            answer.put("state", state());
        } catch (Exception | Error e) {
            answer.put("error", text(e));
        }
    }

    void answerDo(JsonNode call, Map<String, Object> answer) {
        String action = call.get("action").asText();
        otherwise.clear();
        try {
            Method method = method(action);
            if (method == null) {
                answer.put("unsupported", "this adapter has no action " + action);
                return;
            }
            Parameter[] parameters = method.getParameters();
            Object[] values = new Object[parameters.length];
            for (int i = 0; i < values.length; i++) {
                JsonNode value = call.get("args").get(parameters[i].getName());
                value = value == null ? call.path("picks").get(parameters[i].getName()) : value;
                values[i] = JSON.convertValue(value, parameters[i].getType());
            }
            method.invoke(this, values);
            answer.put("accepted", true);
            answer.putAll(otherwise);
            Map<String, Object> last = events.isEmpty() ? answer : events.get(events.size() - 1);
            last.put("state", state());
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof Refused) {
                answer.put("accepted", false);
                answer.put("because", e.getCause().getMessage());
            } else if (e.getCause() instanceof Unsupported) {
                answer.put("unsupported", e.getCause().getMessage());
            } else {
                answer.put("error", text(e.getCause()));
            }
            events.clear();
        } catch (Exception | Error e) {
            answer.put("error", text(e));
            events.clear();
        }
    }

    private Method method(String action) {
        for (Method method : getClass().getDeclaredMethods()) {
            if (method.isAnnotationPresent(Action.class) && method.getName().equals(action)) {
                method.setAccessible(true);
                return method;
            }
        }
        return null;
    }

    private static String text(Throwable e) {
        StringWriter trace = new StringWriter();
        e.printStackTrace(new PrintWriter(trace));
        System.err.print(trace);
        return e.toString();
    }
}
