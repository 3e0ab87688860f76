"""Properties of slot allocation, a file for each model; bindings of Flink's logs (`flink/`) and the runtime's (`runtime/`)."""
