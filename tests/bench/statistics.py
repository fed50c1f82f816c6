"""Percentiles by nearest rank: every number in the table is one that was measured."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Spread:
    """How the samples of one measure are spread; the unit is theirs."""

    n: int
    p50: float
    p95: float
    max: float

    def to_json(self) -> dict[str, float]:
        """Return plain data."""
        return asdict(self)


def spread(samples: Sequence[float]) -> Spread | None:
    """Return the spread of `samples`, or None when there are none."""
    if not samples:
        return None
    return Spread(len(samples), percentile(samples, 50), percentile(samples, 95), max(samples))


def percentile(samples: Sequence[float], percent: float) -> float:
    """Return the smallest sample that at least `percent` (0 < percent <= 100) of all samples do not exceed."""
    rank = math.ceil(len(samples) * percent / 100)
    return sorted(samples)[rank - 1]
