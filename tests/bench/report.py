"""What the benchmark found."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.bench.statistics import Spread, spread

GPU_IDLE = (
    "Stop is acknowledged as soon as it is seen; the engine is ready again when every submitted step has been read "
    "back (engine/generation.py), so `ready` is the moment from which the GPU is idle."
)
# In the order of the table; what a phase does not measure it leaves out. The unit is ms, except of tokens_*.
MEASURES = {
    "stop_to_last_token_ms": "Stop: click to last token shown",
    "stop_to_acknowledged_ms": "Stop: click to acknowledgement",
    "stop_to_gpu_idle_ms": "Stop: click to GPU idle",
    "tokens_after_stop": "Stop: tokens shown after the click",
    "continue_to_first_token_ms": "Continue: click to first new token",
    "reset_idle_ms": "Reset while idle: click to ready",
    "reset_busy_ms": "Reset while busy: click to ready",
    "step_ms": "(a decode step)",
    "chunk_ms": "(a prefill chunk)",
    "prefill_ms": "(a whole prefill)",
}


@dataclass
class Phase:
    """The samples of one phase.

    Args:
        name: "decode" or "prefill".
        samples: by measure, in the order they were taken.
        prompt_tokens: fewest and most tokens of a prompt, as the engine counted them.
        n_missed: samples that were thrown away, because the phase was over before the click.
    """

    name: str
    samples: dict[str, list[float]] = field(default_factory=dict)
    prompt_tokens: tuple[int, int] | None = None
    n_missed: int = 0

    def add(self, found: Mapping[str, Any]) -> None:
        """Take the measures of one sample: {measure: a number, a list of numbers, or None}, `prompt_tokens`."""
        for name in MEASURES:
            values = found.get(name)
            values = values if isinstance(values, list) else [values]
            self.samples.setdefault(name, []).extend(value for value in values if value is not None)
        n_tokens = found.get("prompt_tokens")
        if n_tokens is not None:
            low, high = self.prompt_tokens or (n_tokens, n_tokens)
            self.prompt_tokens = (min(low, n_tokens), max(high, n_tokens))

    def spreads(self) -> dict[str, Spread]:
        """Return the spread of every measure that has samples."""
        found = {name: spread(self.samples.get(name, [])) for name in MEASURES}
        return {name: value for name, value in found.items() if value is not None}

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "missed": self.n_missed,
            "measures": {name: value.to_json() for name, value in self.spreads().items()},
        }


@dataclass
class Report:
    """All of it, and where it was measured."""

    n_samples: int
    seed: int
    adapter: Mapping[str, Any]
    chromium: str
    model: Mapping[str, Any]
    phases: list[Phase] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def take_faults(self, faults: Iterable[str]) -> None:
        """Keep what the page must never do, such as console errors."""
        self.faults.extend(faults)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "bench": "lifecycle",
            "adapter": self.adapter,
            "chromium": self.chromium,
            "model": self.model,
            "samples": self.n_samples,
            "seed": self.seed,
            "gpu_idle": GPU_IDLE,
            "phases": {phase.name: phase.to_json() for phase in self.phases},
            "faults": self.faults,
        }
