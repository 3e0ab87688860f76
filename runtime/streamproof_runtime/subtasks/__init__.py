"""What one subtask does: its dataflow, buffers and flow control, the baton, barriers and the heads of loops."""
