"""``streamproof`` and ``python -m streamproof``."""

import sys


def main() -> int:
    """Run the command line; returns the exit code."""
    from streamproof.cli.app import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
