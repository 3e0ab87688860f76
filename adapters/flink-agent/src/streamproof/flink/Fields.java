package streamproof.flink;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/** Fields and methods of Flink's objects by name, whatever their access. Looked up once for each class. */
final class Fields {
    private static final Map<String, Optional<Field>> FIELDS = new ConcurrentHashMap<>();
    private static final Map<String, Method> METHODS = new ConcurrentHashMap<>();

    private Fields() {}

    /** The value of a field that must exist. */
    static Object get(Object of, String name) throws ReflectiveOperationException {
        return field(of.getClass(), name).orElseThrow(() -> new NoSuchFieldException(of.getClass() + "." + name)).get(of);
    }

    /** The value of a field, or null where the class has none of that name. */
    static Object find(Object of, String name) throws ReflectiveOperationException {
        Optional<Field> field = field(of.getClass(), name);
        return field.isPresent() ? field.get().get(of) : null;
    }

    /** The result of a method without parameters. */
    static Object call(Object of, String name) throws ReflectiveOperationException {
        String key = of.getClass().getName() + "#" + name;
        Method method = METHODS.get(key);
        if (method == null) {
            method = method(of.getClass(), name);
            METHODS.put(key, method);
        }
        return method.invoke(of);
    }

    private static Optional<Field> field(Class<?> type, String name) {
        return FIELDS.computeIfAbsent(type.getName() + "#" + name, key -> {
            for (Class<?> at = type; at != null; at = at.getSuperclass()) {
                try {
                    Field found = at.getDeclaredField(name);
                    found.setAccessible(true);
                    return Optional.of(found);
                } catch (NoSuchFieldException elsewhere) {
                    continue;
                }
            }
            return Optional.empty();
        });
    }

    private static Method method(Class<?> type, String name) throws NoSuchMethodException {
        // A public interface first: the method of a hidden class of the JDK could not be opened.
        for (Class<?> at = type; at != null; at = at.getSuperclass()) {
            for (Class<?> known : at.getInterfaces()) {
                try {
                    Method found = known.getMethod(name);
                    if (java.lang.reflect.Modifier.isPublic(known.getModifiers())) {
                        return found;
                    }
                } catch (NoSuchMethodException elsewhere) {
                    continue;
                }
            }
        }
        for (Class<?> at = type; at != null; at = at.getSuperclass()) {
            try {
                Method found = at.getDeclaredMethod(name);
                found.setAccessible(true);
                return found;
            } catch (NoSuchMethodException elsewhere) {
                continue;
            }
        }
        throw new NoSuchMethodException(type + "." + name);
    }
}
