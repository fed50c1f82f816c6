"""A mixed workload: sessions of different lengths, drawn from stated ranges."""

import random
from dataclasses import asdict, dataclass
from typing import Any

from tests.bench.prompts import words

N_SESSIONS = 8


@dataclass(frozen=True)
class Ranges:
    """What is drawn, each from the first number to the second; tokens of a question are words of `prompts.words`."""

    turns: tuple[int, int] = (2, 4)
    question_tokens: tuple[int, int] = (16, 192)
    answer_tokens: tuple[int, int] = (32, 160)

    def scaled(self, factor: float) -> "Ranges":
        """Return shorter questions and answers, of at least a token."""
        return Ranges(self.turns, _scaled(self.question_tokens, factor), _scaled(self.answer_tokens, factor))

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def draw(ranges: Ranges, seed: int, n_sessions: int = N_SESSIONS) -> list[list[dict[str, Any]]]:
    """Return the turns of each session, {words, max_tokens}; the same ones for the same seed."""
    drawn = random.Random(f"workload {seed}")

    # Before the lengths, so that a scaled workload has as many turns.
    counts = [drawn.randint(*ranges.turns) for _ in range(n_sessions)]

    def turn(name: str) -> dict[str, Any]:
        question = words(drawn.randint(*ranges.question_tokens), f"{seed} {name}")
        return {"words": question, "max_tokens": drawn.randint(*ranges.answer_tokens)}

    return [[turn(f"{session} {number}") for number in range(count)] for session, count in enumerate(counts)]


def _scaled(numbers: tuple[int, int], factor: float) -> tuple[int, int]:
    low, high = (max(1, round(number * factor)) for number in numbers)
    return low, high
