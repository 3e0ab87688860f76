"""Properties of the life cycle of partitions; bindings of Flink's logs (`flink/`) and of the runtime's (`runtime/`)."""
