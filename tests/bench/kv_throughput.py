"""How fast several sessions are together."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.bench.kv_target import Target, span
from tests.bench.statistics import percentile

Found = Mapping[str, Any]


@dataclass(frozen=True)
class Throughput:
    """Tokens a second of several sessions together.

    Args:
        samples: by number of sessions, the answers of each sample as `kv_bench.js` gives them.
    """

    samples: Mapping[int, Sequence[Sequence[Found]]]

    def rates(self, n_sessions: int) -> list[float]:
        """Return tokens a second of each sample."""
        return [tokens_per_s(answers) for answers in self.samples[n_sessions]]

    def median(self, n_sessions: int) -> float:
        """Return the median rate."""
        return percentile(self.rates(n_sessions), 50)

    def n_tokens(self, n_sessions: int) -> tuple[int, int]:
        """Return fewest and most tokens of an answer."""
        counts = [answer["n_tokens"] for answers in self.samples[n_sessions] for answer in answers]
        return min(counts), max(counts)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            str(n): {
                "tokens_per_s": self.median(n),
                "least": min(self.rates(n)),
                "most": max(self.rates(n)),
                "of_one": self.median(n) / self.median(1) if 1 in self.samples else None,
                "answer_tokens": self.n_tokens(n),
                "samples": len(self.samples[n]),
            }
            for n in self.samples
        }

    def lines(self) -> list[str]:
        """Return it as Markdown."""
        rows = ["| sessions at once | tokens/s together | of one | each | tokens an answer |", "|" + " --- |" * 5]
        for n in self.samples:
            rate = self.median(n)
            rows.append(
                f"| {n} | {rate:.1f} | {rate / self.median(1):.2f}x | {rate / n:.1f} | {span(self.n_tokens(n))} |"
            )
        return rows

    def targets(self) -> list[Target]:
        """Return the bounds that the issue sets for it."""
        factor = self.median(4) / self.median(1)
        return [Target("tokens/s of 4 sessions, of one (real GPU)", 2.0, factor, is_most=False, unit="x")]


def tokens_per_s(answers: Sequence[Found]) -> float:
    """Return tokens behind the first delta over the time since; NaN when one delta brought everything."""
    first = min(answers, key=lambda answer: answer["first_at"])
    elapsed_ms = max(answer["last_at"] for answer in answers) - first["first_at"]
    n_tokens = sum(answer["n_tokens"] for answer in answers) - first["tokens_of_first"]
    return n_tokens * 1000 / elapsed_ms if elapsed_ms > 0 else math.nan
