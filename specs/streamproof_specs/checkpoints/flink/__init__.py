"""Checkpoints in Flink's logs: `binding.py` follows the lines through `checkpoint_views`."""
