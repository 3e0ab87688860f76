"""The slot protocol between ResourceManager, TaskExecutors and JobMaster."""
