"""The TaskExecutor: subtasks of the current attempts, and stored partitions."""
