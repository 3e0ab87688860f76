"""Record times as moments of their process's clock."""

from __future__ import annotations

from datetime import UTC, datetime, time
from functools import lru_cache
from typing import Final, NamedTuple

from streamproof.base.records import dataclass

DAY: Final = 86_400.0
BACK: Final = 7_200.0
"""Maximum number of seconds by which a clock without a date runs back, for daylight saving time or because threads log
late."""


class Moment(NamedTuple):
    """When a record was written by its process's clock, in seconds: times are rounded down, so it is an interval."""

    earliest: float
    latest: float


@dataclass(slots=True)
class ClockReading:
    """The moments of one process. Times without a date are monotonic: after midnight it is the next day."""

    dated: bool = True
    last: float | None = None

    def read(self, ts: str | None) -> Moment | None:
        """The moment of the next time, in the form of `Head.ts`; None if it is not a time."""
        found = second_of(ts or "")
        if found is None:
            return None
        second, dated = found
        if not dated:
            self.dated = False
            if self.last is not None:
                second = self.last + forward(self.last, second)
        self.last = second
        return Moment(second, second + (0.001 if "." in (ts or "") else 1.0))


def second_of(ts: str) -> tuple[float, bool] | None:
    """Seconds since 1970, or since midnight for a time without a date, and whether it has one; None if it is not a time."""
    millis = ts[20:]
    if len(millis) == 3 and ts[16] == ":" and ts[19] == "." and ts.isascii() and millis.isdigit():
        whole = _second_of(ts[:19])  # that of many lines
        return None if whole is None else ((round(whole[0]) * 1000 + int(millis)) / 1000, whole[1])
    return _second_of(ts)


@lru_cache(maxsize=64)
def _second_of(ts: str) -> tuple[float, bool] | None:
    try:
        if "T" not in ts:
            at = time.fromisoformat(ts)
            zone = at.utcoffset()
            second = at.hour * 3600 + at.minute * 60 + at.second + at.microsecond / 1e6
            return second - (zone.total_seconds() if zone else 0), False
        moment = datetime.fromisoformat(ts)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp(), True


def forward(before: float, after: float) -> float:
    """Seconds from one time of day to the next one in a log: negative only if the clock runs back slightly."""
    delta = (after - before) % DAY
    return delta - DAY if delta > DAY - BACK else delta
