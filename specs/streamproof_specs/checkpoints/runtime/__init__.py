"""Checkpoints in the runtime's logs: `binding.py` follows those of a job, `loop_logs.py` each feedback channel of a loop."""
