package streamproof.flinkclasses;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;

/**
 * A seeded fault: a wrapper around an interface of Flink. Its text is KIND:TYPE.METHOD[:ARGUMENT], for example
 * lost:TaskSlotTable.freeSlot.
 *
 * <p>Kinds: `lost` (the call does nothing), `doubled` (it is made twice), `off-by-one` (its argument ARGUMENT, counted from
 * 0, or for -1 its result, is one greater, or lacks an element), `stale` (it is not made again, and has the result of the call before), `swapped` (it is made
 * after the next call of any method of the object), `negated` (its truth value is inverted).
 */
final class Fault {
    private static String kind = "";
    private static String type = "";
    private static String method = "";
    private static int argument;
    private static Object previous;
    private static boolean called;

    private Fault() {}

    static void parse(String text) {
        String[] parts = text.split(":");
        kind = parts[0];
        type = parts[1].substring(0, parts[1].indexOf('.'));
        method = parts[1].substring(type.length() + 1);
        argument = parts.length > 2 ? Integer.parseInt(parts[2]) : 0;
    }

    /** A new script begins: no call was made. */
    static void forget() {
        previous = null;
        called = false;
    }

    /** The object, or a wrapper with the fault if the fault concerns the interface. */
    static <T> T wrap(Class<T> of, T target) {
        return of.getSimpleName().equals(type)
                ? of.cast(Proxy.newProxyInstance(of.getClassLoader(), new Class<?>[] {of}, handler(target)))
                : target;
    }

    private static InvocationHandler handler(Object target) {
        Object[][] delayed = new Object[1][];
        return (proxy, m, args) -> {
            if (!m.getName().equals(method)) {
                Object result = call(target, m, args);
                if (delayed[0] != null) {
                    Object[] late = delayed[0];
                    delayed[0] = null;
                    call(target, (Method) late[0], (Object[]) late[1]);
                }
                return result;
            }
            switch (kind) {
                case "lost":
                    return Reflect.nothing(m.getReturnType());
                case "doubled":
                    call(target, m, args);
                    return call(target, m, args);
                case "off-by-one":
                    Object[] changed = args == null ? new Object[0] : args.clone();
                    if (changed.length == 0 || argument < 0) {
                        return Reflect.oneMore(call(target, m, args));
                    }
                    changed[argument] = Reflect.oneMore(changed[argument]);
                    return call(target, m, changed);
                case "negated":
                    return !(Boolean) call(target, m, args);
                case "stale":
                    previous = called ? previous : call(target, m, args);
                    called = true;
                    return previous;
                case "swapped":
                    delayed[0] = new Object[] {m, args};
                    return Reflect.nothing(m.getReturnType());
                default:
                    throw new IllegalArgumentException("unknown fault " + kind);
            }
        };
    }

    private static Object call(Object target, Method m, Object[] args) throws Throwable {
        try {
            m.setAccessible(true);
            return m.invoke(target, args);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }
}
