"""Errors of the runtime."""

from __future__ import annotations


class RuntimeFailure(Exception):
    """The base of all errors that the runtime reports."""


class JobError(RuntimeFailure):
    """A job that cannot be built: the message names the operators."""


class JobFailed(RuntimeFailure):
    """A job that cannot finish: a user function raised an error in every attempt, or the restart limit is reached."""


class OutsideSimulation(RuntimeFailure):
    """A user function used something that a simulated run cannot repeat: a clock, a thread, a socket, a process, entropy."""


class Unsendable(RuntimeFailure):
    """A value that is no record, or too large a one."""


class ProcessLost(RuntimeFailure):
    """A process without which the job cannot go on has ended."""


class CannotStore(Exception):
    """A TaskExecutor cannot store a record now, such as on a full disk; another attempt may."""
