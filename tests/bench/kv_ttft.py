"""How long a session waits for its first token, by what the pool already has of its prompt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.bench.kv_target import Target, span
from tests.bench.statistics import Spread, spread

Found = Mapping[str, Any]


TTFT_KINDS = {
    "cold": "cold: an empty session",
    "second_turn": "second turn: first prompt, its answer, a question",
    "forked": "forked: the same prefix, another question",
    "shared": "new session: the same prefix, another question",
}


@dataclass(frozen=True)
class Ttft:
    """Times from a question to the first token of its answer.

    Args:
        samples: what `kv_bench.js` says of each answer, by a key of `TTFT_KINDS`.
    """

    samples: Mapping[str, Sequence[Found]]

    def spread(self, kind: str) -> Spread:
        """Return how the times of a kind are spread, in ms."""
        found = spread([sample["ttft_ms"] for sample in self.samples[kind]])
        assert found is not None, kind
        return found

    def counts(self, kind: str, name: str) -> tuple[int, int]:
        """Return fewest and most of a count of tokens."""
        values = [sample[name] for sample in self.samples[kind]]
        return min(values), max(values)

    def share_of_cold(self, kind: str) -> float:
        """Return the median's share of the cold one's."""
        return self.spread(kind).p50 / self.spread("cold").p50

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            kind: {
                "ttft_ms": self.spread(kind).to_json(),
                "share_of_cold": self.share_of_cold(kind),
                "prompt_tokens": self.counts(kind, "prompt_tokens"),
                "num_cached_tokens": self.counts(kind, "cached_tokens"),
            }
            for kind in self.samples
        }

    def lines(self) -> list[str]:
        """Return it as Markdown."""
        rows = ["| first token | p50 | p95 | of cold | prompt tokens | of those reused |", "|" + " --- |" * 6]
        for kind in self.samples:
            times = self.spread(kind)
            counts = " | ".join(span(self.counts(kind, name)) for name in ("prompt_tokens", "cached_tokens"))
            share = f"{self.share_of_cold(kind):.0%}"
            rows.append(f"| {TTFT_KINDS[kind]} | {times.p50:.1f} ms | {times.p95:.1f} ms | {share} | {counts} |")
        return rows

    def targets(self) -> list[Target]:
        """Return the bounds that the issue sets for it."""
        what = "second-turn TTFT, of cold"
        return [Target(what, 0.3, self.share_of_cold("second_turn"), is_most=True, unit="%")]
