"""What the KV benchmark found, as JSON and as Markdown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.bench.kv_target import Part, Target, target_lines


@dataclass
class KvReport:
    """All of it, and where it was measured."""

    date: str
    command: str
    adapter: Mapping[str, Any]
    chromium: str
    model: Mapping[str, Any]
    pool_positions: int
    n_samples: int
    seed: int
    parts: dict[str, Part] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    @property
    def targets(self) -> list[Target]:
        """Of all parts."""
        return [target for part in self.parts.values() for target in part.targets()]

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "bench": "kv",
            "date": self.date,
            "command": self.command,
            "adapter": self.adapter,
            "chromium": self.chromium,
            "model": self.model,
            "pool_positions": self.pool_positions,
            "samples": self.n_samples,
            "seed": self.seed,
            "parts": {name: part.to_json() for name, part in self.parts.items()},
            "targets": [target.to_json() for target in self.targets],
            "faults": self.faults,
        }

    def table(self) -> str:
        """Return where it was measured, the targets, then the parts."""
        names = (self.adapter.get(name) for name in ("vendor", "architecture", "description"))
        adapter = " ".join(str(name) for name in names if name)
        model = f"{self.model.get('name')} {self.model.get('quantisation')}"
        lines = [
            f"{self.date}; {adapter}; Chromium {self.chromium}; {model}, context {self.model.get('context_length')}; "
            f"a pool of {self.pool_positions} positions; {self.n_samples} samples, seed {self.seed}.",
            f"`{self.command}`",
        ]
        lines += target_lines(self.targets)
        for part in self.parts.values():
            lines += ["", *part.lines()]
        return "\n".join([*lines, *(f"FAULT {fault}" for fault in self.faults)])
