"""Units of time: clocks, logs and limits are in nanoseconds."""

MICROSECOND = 1_000
MILLISECOND = 1_000_000
