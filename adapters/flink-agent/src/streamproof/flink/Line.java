package streamproof.flink;

/** Fields of a JSON object, in the order in which they were put. */
final class Line {
    private final StringBuilder fields = new StringBuilder();
    private String channel = "";

    Line put(String name, Object value) {
        key(name);
        if (value instanceof Number || value instanceof Boolean) {
            fields.append(value);
        } else {
            quote(String.valueOf(value));
        }
        return this;
    }

    /** A flag that is written only where it is set. */
    Line flag(String name, boolean value) {
        return value ? put(name, true) : this;
    }

    Line with(String name, Line inner) {
        key(name);
        fields.append(inner);
        return this;
    }

    Line and(Line more) {
        if (more.fields.length() > 0) {
            fields.append(fields.length() > 0 ? "," : "").append(more.fields);
        }
        return this;
    }

    Line of(Object id) {
        channel = String.valueOf(id);
        return this;
    }

    String channel() {
        return channel;
    }

    private void key(String name) {
        if (fields.length() > 0) {
            fields.append(',');
        }
        quote(name);
        fields.append(':');
    }

    private void quote(String text) {
        fields.append('"');
        for (int at = 0; at < text.length(); at++) {
            char c = text.charAt(at);
            if (c == '"' || c == '\\') {
                fields.append('\\').append(c);
            } else if (c < ' ') {
                fields.append(String.format("\\u%04x", (int) c));
            } else {
                fields.append(c);
            }
        }
        fields.append('"');
    }

    @Override
    public String toString() {
        return "{" + fields + "}";
    }
}
