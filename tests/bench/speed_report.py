"""What the speed benchmark found, as JSON and as Markdown; the tables are those that the page shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.kv_target import Target, target_lines
from tests.bench.speed_targets import targets
from ui import strings
from ui.benchmark_tables import tables

_STRINGS = Path(__file__).parents[2] / "static" / "strings"


@dataclass
class SpeedReport:
    """All of it, and where it was measured.

    Args:
        command: the command line.
        driver: the card and its driver as the machine names them, "" when it does not.
        chromium: its version.
        loads: `ready_ms` and `timings` of the loads beforehand.
        page: the JSON that the page gives.
    """

    command: str
    driver: str
    chromium: str
    loads: Sequence[Mapping[str, Any]]
    page: Mapping[str, Any]
    faults: list[str] = field(default_factory=list)

    @property
    def targets(self) -> list[Target]:
        """The issue's bounds for this model."""
        return targets(self.page, [load["ready_ms"] for load in self.loads])

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            **self.page,
            "command": self.command,
            "driver": self.driver,
            "chromium": self.chromium,
            "loads": list(self.loads),
            "targets": [target.to_json() for target in self.targets],
            "faults": self.faults,
        }

    def table(self) -> str:
        """Return where it was measured, the targets, then the page's tables."""
        page, model = self.page, self.page["model"]
        adapter = page["adapter"]
        names = [self.driver] if self.driver else [adapter.get(name) for name in ("vendor", "architecture")]
        plan = page["plan"]
        lines = [
            f"{page['date'][:10]}; {' '.join(str(name) for name in names if name)}; Chromium {self.chromium}; "
            f"{model['name']} {model['quantisation']}, context {model['context_length']}; answers of "
            f"{plan['answer_tokens']} tokens, p50 of {plan['samples']}.",
            f"`{self.command}`",
            *(_load_line(load) for load in [*self.loads, page["load"]]),
            *target_lines(self.targets),
        ]
        english = strings.load(str(_STRINGS), "en")
        for caption, headings, rows in tables(english, page["rows"], page["steps"], page["card"]):
            lines += ["", caption, "", _row(headings), "|" + " --- |" * len(headings)]
            lines += [_row([*cells, *[""] * (len(headings) - len(cells))]) for cells in rows]
        return "\n".join([*lines, *(f"FAULT {fault}" for fault in self.faults)])


def _load_line(load: Mapping[str, Any]) -> str:
    stages = ", ".join(f"{name} {value}" for name, value in load["timings"].items())
    return f"Loaded in {load['ready_ms'] or 0:.0f} ms of the page's life ({stages})."


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
