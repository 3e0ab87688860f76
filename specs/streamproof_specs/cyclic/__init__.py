"""Properties and claims of flow control in loops; `runtime/` follows the loop heads of the runtime's logs."""
