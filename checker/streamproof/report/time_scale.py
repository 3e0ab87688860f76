"""A time axis of bounded width in which long times without events are cut, so that what happens in between is legible. The
time for which a job hangs is not cut."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from streamproof.base.records import dataclass
from streamproof.report.rows import duration

WIDTH: Final = 1000.0
"""Width of the axis in units."""
_CUT = 36.0  # width of a cut
_SHARE = 0.25  # a gap is cut if it is longer than this share of all time that remains
_CUTS = 8
_HUNG = 0.75  # largest share of the axis for the time of a hang, if other time is drawn
_TICKS = 4
_APART = 220.0
_STEPS = (60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 18000.0, 36000.0)


@dataclass(frozen=True, slots=True)
class Cut:
    """A time without events that is drawn shorter than it was: its place, and its length in seconds."""

    x: float
    width: float
    seconds: float


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Positions of times in seconds: linear between the `knots`, which are (time, position)."""

    knots: tuple[tuple[float, float], ...]
    cuts: tuple[Cut, ...]

    @property
    def start(self) -> float:
        """The first time."""
        return self.knots[0][0]

    @property
    def end(self) -> float:
        """The last time."""
        return self.knots[-1][0]

    def x(self, time: float) -> float:
        """The position of a time, between 0 and `WIDTH`."""
        if time >= self.end:
            return self.knots[-1][1]
        at = bisect_right(self.knots, (time, math.inf))
        if at == 0:
            return 0.0
        (t0, x0), (t1, x1) = self.knots[at - 1 : at + 1]
        return x0 + (x1 - x0) * (time - t0) / (t1 - t0)

    def ticks(self) -> list[tuple[float, str]]:
        """Positions with labels, the time since the start; none inside a cut."""
        drawn = self.end - self.start - sum(cut.seconds for cut in self.cuts)
        if drawn <= 0:
            return [(0.0, "0")]
        raw = drawn / _TICKS
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(n * power for n in (1, 2, 5, 10) if n * power >= raw)
        if step > 20:
            step = next((s for s in _STEPS if s >= raw), math.ceil(raw / 36000) * 36000.0)
        digits = max(-math.floor(math.log10(step) + 1e-9), 0)
        found: list[tuple[float, str]] = []
        for (t0, x0), (t1, x1) in pairwise(self.knots):
            if any(cut.x == x0 for cut in self.cuts):
                continue
            for n in range(math.ceil((t0 - self.start) / step - 1e-9), math.floor((t1 - self.start) / step + 1e-9) + 1):
                x = x0 + (x1 - x0) * (self.start + n * step - t0) / (t1 - t0)
                if not found or x - found[-1][0] >= _APART:
                    found.append((x, f"+{_exactly(n * step, digits)}" if n else "0"))
        return found


def _exactly(seconds: float, digits: int) -> str:
    """A time with as many decimals of a second as the labels of an axis need to differ."""
    if seconds < 1:
        return f"{seconds * 1000:.{max(digits - 3, 0)}f} ms"
    if seconds < 60:
        return f"{seconds:.{digits}f} s"
    if digits == 0:
        return duration(seconds)
    minutes, rest = divmod(round(seconds, digits), 60)
    return f"{duration(minutes * 60)} {rest:.{digits}f} s"


def time_scale(times: Iterable[float], hang: tuple[float, float] | None = None) -> TimeScale | None:
    """The scale for these times; None without any. Gaps between the times of `hang` are not cut; all of them together take
    at most three quarters of the axis."""
    ordered = sorted(set(times))
    if not ordered:
        return None
    gaps = sorted(((b - a, a) for a, b in pairwise(ordered)), reverse=True)
    hung = {a: length for length, a in gaps if hang is not None and hang[0] <= a and a + length <= hang[1] + 1e-6}
    hanging = math.fsum(hung.values())
    gaps = [gap for gap in gaps if gap[1] not in hung]
    rest = math.fsum(length for length, _ in gaps)
    cut: set[float] = set()
    for at, (length, begin) in enumerate(gaps[:_CUTS], 1):
        others = math.fsum(other for other, _ in gaps[at:])
        if others + hanging == 0 or length <= _SHARE * (others + hanging):
            break
        cut.add(begin)
        rest = others
    drawn = WIDTH - _CUT * len(cut)
    share = 0.0 if hanging == 0 else 1.0 if rest <= 0 else min(hanging / (hanging + rest), _HUNG)
    unit = drawn * (1 - share) / rest if rest > 0 else 0.0
    knots, cuts, x = [(ordered[0], 0.0)], [], 0.0
    for a, b in pairwise(ordered):
        if a in cut:
            cuts.append(Cut(x, _CUT, b - a))
            x += _CUT
        else:
            x += hung[a] * drawn * share / hanging if a in hung else (b - a) * unit
        knots.append((b, x))
    return TimeScale(tuple(knots), tuple(cuts))
