package streamproof.flinkclasses;

import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.apache.flink.runtime.concurrent.ComponentMainThreadExecutor;

/** Constructors, methods and fields of Flink by name, so that one source fits several versions, and stand-ins for interfaces. */
final class Reflect {
    private Reflect() {}

    /** What a stand-in does with a call of a method; null: return nothing. */
    @FunctionalInterface
    interface Handler {
        Object call(Object[] args) throws Throwable;
    }

    /** An object of a class by the constructor of which most parameters fit the values, each used once, in their order. */
    static <T> T make(Class<T> type, Object... values) {
        Constructor<?> best = null;
        for (Constructor<?> candidate : type.getDeclaredConstructors()) {
            if (best == null || fitting(candidate, values) > fitting(best, values)) {
                best = candidate;
            }
        }
        Constructor<?> chosen = best;
        chosen.setAccessible(true);
        return type.cast(unwrapped(() -> chosen.newInstance(fill(chosen, values))));
    }

    /** Calls a static method likewise. */
    static Object invoke(Class<?> type, String name, Object... values) {
        return invoke(null, type, name, values);
    }

    /** Calls a method of an object, of its class or of a class above, likewise. */
    static Object call(Object target, String name, Object... values) {
        return invoke(target, target.getClass(), name, values);
    }

    /** Calls a method that not all versions have. */
    static void callIfAny(Object target, String name) {
        for (Method m : target.getClass().getDeclaredMethods()) {
            if (m.getName().equals(name)) {
                call(target, name);
            }
        }
    }

    private static Object invoke(Object target, Class<?> type, String name, Object... values) {
        Method best = null;
        for (Class<?> c = type; c != null; c = c.getSuperclass()) {
            for (Method m : c.getDeclaredMethods()) {
                boolean named = m.getName().equals(name) && !m.isBridge() && m.getParameterCount() >= values.length;
                if (named && (best == null || fitting(m, values) > fitting(best, values))) {
                    best = m;
                }
            }
        }
        if (best == null) {
            throw new IllegalArgumentException(type + " has no method " + name);
        }
        Method chosen = best;
        chosen.setAccessible(true);
        return unwrapped(() -> chosen.invoke(target, fill(chosen, values)));
    }

    /** The value of a field of the object's class, or of a class above. */
    static Object get(Object target, String name) {
        for (Class<?> c = target.getClass(); c != null; c = c.getSuperclass()) {
            for (Field f : c.getDeclaredFields()) {
                if (f.getName().equals(name)) {
                    f.setAccessible(true);
                    return unwrapped(() -> f.get(target));
                }
            }
        }
        throw new IllegalArgumentException(target.getClass() + " has no field " + name);
    }

    /** Sets a field of the object's class. */
    static void set(Object target, String name, Object value) {
        try {
            Field f = target.getClass().getDeclaredField(name);
            f.setAccessible(true);
            f.set(target, value);
        } catch (ReflectiveOperationException e) {
            throw new IllegalArgumentException(e);
        }
    }

    /** Replaces a set in a field by one that is walked in a given order, where Flink takes that of identity hash codes. */
    static <T> void order(Object target, String name, Comparator<T> order) {
        set(target, name, new HashSet<T>() {
            private static final long serialVersionUID = 1;

            @Override
            public Iterator<T> iterator() {
                List<T> sorted = new ArrayList<>();
                super.iterator().forEachRemaining(sorted::add);
                sorted.sort(order);
                return sorted.iterator();
            }
        });
    }

    /** A stand-in for an interface: the named methods do what their handlers do, all others nothing. */
    static <T> T stub(Class<T> type, Map<String, Handler> handlers) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, m, args) -> {
            switch (m.getName()) {
                case "equals":
                    return proxy == args[0];
                case "hashCode":
                    return System.identityHashCode(proxy);
                case "toString":
                    return "stand-in for " + type.getSimpleName();
                default:
                    Handler handler = handlers.get(m.getName());
                    return handler == null ? nothing(m.getReturnType()) : handler.call(args);
            }
        }));
    }

    /** A wrapper around an object: the named methods do what their handlers do, all others what the object does. */
    static <T> T around(Class<T> type, T target, Map<String, Handler> handlers) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, m, args) -> {
            Handler handler = handlers.get(m.getName());
            try {
                return handler == null ? m.invoke(target, args) : handler.call(args);
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        }));
    }

    /** The first argument of a type: versions have it in different places. */
    static <T> T argument(Class<T> type, Object[] args) {
        for (Object arg : args) {
            if (type.isInstance(arg)) {
                return type.cast(arg);
            }
        }
        throw new IllegalArgumentException("no argument is a " + type);
    }

    /** What a call returns that does nothing: 0, false, an empty collection, a future that is complete. */
    static Object nothing(Class<?> type) {
        if (type == boolean.class) {
            return false;
        } else if (type == int.class) {
            return 0;
        } else if (type == long.class) {
            return 0L;
        } else if (type == CompletableFuture.class) {
            return CompletableFuture.completedFuture(null);
        } else if (type == Optional.class) {
            return Optional.empty();
        } else if (type == Set.class) {
            return new HashSet<>();
        } else if (type == List.class || type == Collection.class) {
            return List.of();
        } else if (type == Duration.class) {
            return Duration.ofHours(1);
        } else if (type.getSimpleName().equals("ApplicationID")) { // Flink 2.3
            return make(type);
        } else if (type == ComponentMainThreadExecutor.class) {
            return JobWorld.mainThread();
        } else if (type.getSimpleName().equals("Time")) { // Flink 1.20
            return invoke(type, "milliseconds", 3_600_000L);
        } else if (type.getSimpleName().equals("ExecutionPlanSchedulingContext")) { // Flink 2.0 and later
            return constant(type.getPackageName() + ".NonAdaptiveExecutionPlanSchedulingContext", "INSTANCE");
        }
        return null;
    }

    private static Object constant(String type, String name) {
        try {
            return Class.forName(type).getField(name).get(null);
        } catch (ReflectiveOperationException e) {
            throw new IllegalArgumentException(e);
        }
    }

    /** A number plus one; a collection without its first element. */
    static Object oneMore(Object value) {
        if (value instanceof Integer) {
            return (Integer) value + 1;
        } else if (value instanceof Long) {
            return (Long) value + 1;
        } else if (value instanceof Collection) {
            List<Object> rest = new ArrayList<>((Collection<?>) value);
            if (!rest.isEmpty()) {
                rest.remove(0);
            }
            return value instanceof Set ? new HashSet<>(rest) : rest;
        }
        throw new IllegalArgumentException("no number and no collection: " + value);
    }

    private static int fitting(Executable e, Object[] values) {
        int used = 0;
        for (Class<?> type : e.getParameterTypes()) {
            used += used < values.length && fits(type, values[used]) ? 1 : 0;
        }
        return used * 100 - e.getParameterCount();
    }

    private static Object[] fill(Executable e, Object[] values) {
        Class<?>[] types = e.getParameterTypes();
        Object[] filled = new Object[types.length];
        int used = 0;
        for (int i = 0; i < types.length; i++) {
            boolean fits = used < values.length && fits(types[i], values[used]);
            filled[i] = fits ? values[used++] : nothing(types[i]);
        }
        if (used < values.length) {
            throw new IllegalArgumentException("no place for " + values[used] + " in " + e);
        }
        return filled;
    }

    private static boolean fits(Class<?> type, Object value) {
        if (value == null) {
            return !type.isPrimitive();
        }
        if (type.isPrimitive()) {
            return (type == int.class && value instanceof Integer) || (type == long.class && value instanceof Long)
                    || (type == boolean.class && value instanceof Boolean);
        }
        return type.isInstance(value);
    }

    private interface Reflective {
        Object run() throws ReflectiveOperationException;
    }

    private static Object unwrapped(Reflective body) {
        try {
            return body.run();
        } catch (InvocationTargetException e) {
            throw Reflect.<RuntimeException>sneaky(e.getCause());
        } catch (ReflectiveOperationException e) {
            throw new IllegalArgumentException(e);
        }
    }

    @SuppressWarnings("unchecked")
    private static <E extends Throwable> E sneaky(Throwable e) throws E {
        throw (E) e;
    }
}
