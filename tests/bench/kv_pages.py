"""How full the pages are, and how many sessions fit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.bench.kv_target import Target, span
from tests.bench.statistics import percentile

Found = Mapping[str, Any]


@dataclass(frozen=True)
class Utilisation:
    """How full the pages in use are, while the workload runs.

    Args:
        pools: the `pool` events in order.
        ranges, seed: of the workload.
        lengths: committed positions of each session at the end.
    """

    pools: Sequence[Found]
    ranges: Mapping[str, Any]
    seed: int
    lengths: Sequence[int]

    @property
    def values(self) -> list[float]:
        """Utilisations while anything was in use."""
        return [pool["utilisation"] for pool in self.pools if pool["used"]]

    @property
    def mean(self) -> float:
        """Over all looks at the pool."""
        return sum(self.values) / len(self.values)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "workload": {"sessions": len(self.lengths), "seed": self.seed, **self.ranges},
            "looks": len(self.values),
            "mean": self.mean,
            "min": min(self.values),
            "p50": percentile(self.values, 50),
            "at_the_end": self.values[-1],
            "lengths": list(self.lengths),
        }

    def lines(self) -> list[str]:
        """Return it as Markdown."""
        ranges = "; ".join(f"{name.replace('_', ' ')} {span(pair)}" for name, pair in self.ranges.items())
        return [
            f"Workload: {len(self.lengths)} sessions at once, seed {self.seed}; {ranges}; in the end "
            f"{span((min(self.lengths), max(self.lengths)))} positions a session.",
            "",
            "| utilisation | mean | median | least | at the end | looks |",
            "|" + " --- |" * 6,
            f"| positions filled, of the pages in use | {self.mean:.1%} | {percentile(self.values, 50):.1%} "
            f"| {min(self.values):.1%} | {self.values[-1]:.1%} | {len(self.values)} |",
        ]

    def targets(self) -> list[Target]:
        """Return the bounds that the issue sets for it."""
        return [Target("utilisation, mean", 0.96, self.mean, is_most=False, unit="%")]


FORMULA = (
    "paged: pages of the pool x sessions of the workload / pages that they hold at its end; "
    "contiguous: positions of the pool / context length"
)


@dataclass(frozen=True)
class Capacity:
    """How many sessions of the workload's mean length fit the pool's bytes.

    Args:
        pool: the `pool` event at the end of the workload.
        lengths: committed positions of each session at that moment.
        context_length: positions of one contiguous buffer.
    """

    pool: Found
    lengths: Sequence[int]
    context_length: int

    @property
    def paged(self) -> float:
        """Sessions on pages."""
        return float(self.pool["total"] * len(self.lengths) / self.pool["used"])

    @property
    def contiguous(self) -> float:
        """Sessions with a buffer of `context_length` positions each."""
        return float(self.pool["total"] * self.pool["page_positions"] / self.context_length)

    @property
    def factor(self) -> float:
        """How many times as many."""
        return self.paged / self.contiguous

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "formula": FORMULA,
            "mean_length": sum(self.lengths) / len(self.lengths),
            "context_length": self.context_length,
            "pages_total": self.pool["total"],
            "pages_used": self.pool["used"],
            "page_positions": self.pool["page_positions"],
            "sessions": len(self.lengths),
            "sessions_paged": self.paged,
            "sessions_contiguous": self.contiguous,
            "factor": self.factor,
        }

    def lines(self) -> list[str]:
        """Return it as Markdown."""
        mean = sum(self.lengths) / len(self.lengths)
        pool = self.pool
        return [
            f"{len(self.lengths)} sessions of {mean:.0f} positions on average hold {pool['used']} of {pool['total']} "
            f"pages of {pool['page_positions']}; context length {self.context_length}. {FORMULA}.",
            "",
            "| sessions in the same bytes | paged | contiguous | factor |",
            "|" + " --- |" * 4,
            f"| of that length | {self.paged:.1f} | {self.contiguous:.1f} | {self.factor:.2f}x |",
        ]

    def targets(self) -> list[Target]:
        """Return the bounds that the issue sets for it."""
        what = "sessions in the same bytes, of contiguous buffers"
        return [Target(what, 2.5, self.factor, is_most=False, unit="x")]
