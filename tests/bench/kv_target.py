"""A part of the KV benchmark's report, and the bounds that the issue sets for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Target:
    """What the issue asks for, and what was found.

    Args:
        what: is measured.
        wanted: the bound.
        found: the measured value, in the unit of the bound.
        is_most: whether the bound is the most allowed; otherwise it is the least.
        unit: "%" for shares of 1, "x" for factors, else with its space.
    """

    what: str
    wanted: float
    found: float
    is_most: bool
    unit: str

    @property
    def is_met(self) -> bool:
        """Whether the found value keeps the bound."""
        return self.found <= self.wanted if self.is_most else self.found >= self.wanted

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        bound = "most" if self.is_most else "least"
        return {"what": self.what, bound: self.wanted, "found": self.found, "unit": self.unit, "met": self.is_met}


class Part(Protocol):
    """One part of the report."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""

    def lines(self) -> list[str]:
        """Return it as Markdown."""

    def targets(self) -> list[Target]:
        """Return the bounds that the issue sets for it."""


def target_lines(targets: Sequence[Target]) -> list[str]:
    """Return the bounds beside what was found, as Markdown; nothing without a bound."""
    rows = [_row(target) for target in targets]
    return ["", "| target | wanted | found | met |", "|" + " --- |" * 4, *rows] if rows else []


def _row(target: Target) -> str:
    wanted, found = (
        f"{value:.0%}" if target.unit == "%" else f"{value:.2f}{target.unit}" for value in (target.wanted, target.found)
    )
    bound = "at most" if target.is_most else "at least"
    return f"| {target.what} | {bound} {wanted} | {found} | {'yes' if target.is_met else 'no'} |"


def span(pair: Sequence[int]) -> str:
    """Return "low" or "low to high"."""
    low, high = pair
    return str(low) if low == high else f"{low} to {high}"
