"""``streamproof`` and ``python -m streamproof``."""

import gc
import sys

GARBAGE = 20_000
"""Objects that may be made before Python looks for cyclic garbage: what a start makes stays, and is not worth a look."""


def main() -> int:
    """Run the command line; returns the exit code."""
    gc.set_threshold(GARBAGE)
    from streamproof.cli.app import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
