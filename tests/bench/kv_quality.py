"""What 8-bit keys and values cost."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.bench.kv_target import Target

Found = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """One golden prompt, answered with 16-bit and with 8-bit keys and values.

    Args:
        name: of the prompt.
        n_equal: leading tokens that are the same.
        n_compared: tokens of the shorter answer.
        logit_difference: largest of the first token's best logits.
    """

    name: str
    n_equal: int
    n_compared: int
    logit_difference: float

    @classmethod
    def of(cls, name: str, plain: Found, packed: Found) -> "Case":
        """Compare two answers."""
        pairs = list(zip(plain["output_ids"], packed["output_ids"], strict=False))
        n_equal = next((i for i, (one, other) in enumerate(pairs) if one != other), len(pairs))
        logits, others = dict(plain["top_logits"]), dict(packed["top_logits"])
        differences = [abs(logits[token_id] - others[token_id]) for token_id in logits if token_id in others]
        return cls(name, n_equal, len(pairs), max(differences, default=math.nan))


@dataclass(frozen=True)
class Quality:
    """What 8-bit keys and values cost.

    Args:
        cases: the golden prompts.
        pool_bytes: keys and values of one layer, by format.
    """

    cases: Sequence[Case]
    pool_bytes: Mapping[str, int]

    @property
    def agreement(self) -> float:
        """Share of the tokens that are leading and equal."""
        return sum(case.n_equal for case in self.cases) / max(1, sum(case.n_compared for case in self.cases))

    @property
    def logit_difference(self) -> float:
        """Largest of all prompts."""
        return max(case.logit_difference for case in self.cases)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "agreement": self.agreement,
            "max_logit_difference": self.logit_difference,
            "pool_bytes": dict(self.pool_bytes),
            "prompts": {
                case.name: {"equal": case.n_equal, "of": case.n_compared, "logit_difference": case.logit_difference}
                for case in self.cases
            },
        }

    def lines(self) -> list[str]:
        """Return it as Markdown."""
        size = self.pool_bytes["q8"] / self.pool_bytes["f16"]
        rows = [
            f"8-bit keys and values take {size:.0%} of the bytes of 16-bit ones.",
            "",
            "| q8 against f16 | equal leading tokens | largest difference of the first logits |",
            "|" + " --- |" * 3,
        ]
        rows += [f"| {c.name} | {c.n_equal} of {c.n_compared} | {c.logit_difference:.3f} |" for c in self.cases]
        return [*rows, f"| all | {self.agreement:.0%} | {self.logit_difference:.3f} |"]

    def targets(self) -> list[Target]:
        """Return the bounds that the issue sets for it: none."""
        return []
