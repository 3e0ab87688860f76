"""The version of streamproof, as in what it writes, and the commit that it was built from."""

from __future__ import annotations

from pathlib import Path

VERSION = "0.2.0"
BUILT_FROM = Path(__file__).with_name("COMMIT")
"""In a wheel: the commit, written by `tools/build_commit.py`."""


def commit() -> str | None:
    """The commit of a wheel, or of the checkout that holds this file (`-dirty` if it was changed since).

    None where neither is known: without Git, or in a copy without history.
    """
    if BUILT_FROM.exists():
        return BUILT_FROM.read_text(encoding="utf-8").strip() or None
    root = BUILT_FROM.parents[2]
    if not (root / ".git").exists():
        return None
    import subprocess

    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip() or None


def version_line() -> str:
    """What `--version` prints after the name: `0.2.0`, or `0.2.0 (commit 1a2b3c4)`."""
    known = commit()
    return f"{VERSION} (commit {known})" if known else VERSION
