"""Properties of slot allocation, one file a model; bindings of Flink's logs (`flink/`) and the runtime's (`runtime/`)."""
