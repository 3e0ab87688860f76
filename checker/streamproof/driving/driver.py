"""The driver: runs scripts on an implementation, one after the other."""

from __future__ import annotations

from streamproof.driving.adapter_session import AdapterSession
from streamproof.driving.drive_coverage import DriveCoverage
from streamproof.driving.messages import AdapterFailure
from streamproof.driving.script import CallScript
from streamproof.driving.script_run import Chooser, Ran, Running


class Driver(AdapterSession):
    """Runs scripts on one adapter."""

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, script: CallScript | str, choose: Chooser | None = None) -> Ran:
        """Runs a script, or the one that `choose` makes, which then has this name.

        Raises `AdapterFailure` for an adapter that cannot be started, or writes something else than messages with values of
        the model.
        """
        name = script if isinstance(script, str) else script.name
        made = Running(self, name)
        fixed = iter(() if isinstance(script, str) else script.calls)
        try:
            made.reset()
            made.go(choose or (lambda *_: next(fixed, None)))
            made.finish()
        except AdapterFailure as failure:
            self.close()
            if failure.kind == "crash" and not self.has_answered:
                raise AdapterFailure("start", failure.message, failure.remedy) from None
            if failure.kind not in ("crash", "hang"):
                raise
            made.ended, made.message = failure.kind, str(failure)
        except BaseException:
            self.close()
            raise
        counts = self.tally.counts
        counts.scripts += 1
        counts.calls += len(made.calls)
        return made.ran()

    @property
    def coverage(self) -> DriveCoverage:
        """What was driven so far."""
        return self.tally.coverage

    @coverage.setter
    def coverage(self, coverage: DriveCoverage) -> None:
        self.tally.coverage = coverage
