"""The JobMaster: regions, their scheduling and failover, datasets and checkpoints."""
