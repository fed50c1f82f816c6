"""What a request may ask of the sampler, checked once, where it is made."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from clutch.errors import RequestError


@dataclass(frozen=True)
class _Range:
    kind: type
    low: float
    high: float
    excludes_low: bool = False

    def holds(self, value: object) -> bool:
        numbers = (int,) if self.kind is int else (int, float)
        if not isinstance(value, numbers) or isinstance(value, bool):
            return False
        return self.low <= value <= self.high and not (self.excludes_low and value == self.low)

    def __str__(self) -> str:
        noun = "a whole number" if self.kind is int else "a number"
        start = f"above {self.low} and up" if self.excludes_low else f"from {self.low}"
        return f"{noun} {start} to {self.high}"


_RANGES = {
    "temperature": _Range(float, 0, 10),
    "top_k": _Range(int, 0, 1_000_000),
    "top_p": _Range(float, 0, 1, excludes_low=True),
    "min_p": _Range(float, 0, 1),
    "seed": _Range(int, 0, 2**64 - 1),
    "max_tokens": _Range(int, 1, 1_000_000),
}


@dataclass(frozen=True)
class SamplingParams:
    """How tokens are drawn; the defaults are greedy.

    Args:
        temperature: 0 takes the likeliest token, whatever the rest says.
        top_k: keep the k likeliest tokens; 0 keeps all.
        top_p: keep the likeliest tokens that hold this share of the probability; 1 keeps all.
        min_p: keep tokens at least this likely, relative to the likeliest; 0 keeps all.
        seed: of the random numbers.
        max_tokens: after which the answer is cut.

    Raises:
        RequestError: a value is not in its range; names field, value and range.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0
    max_tokens: int = 512

    def __post_init__(self) -> None:
        for name, allowed in _RANGES.items():
            value = getattr(self, name)
            if not allowed.holds(value):
                shown = _shown(value)
                raise RequestError(f"{name} is {shown}; allowed is {allowed}", field=name, value=shown)

    @classmethod
    def from_wire(cls, wire: Mapping[str, object]) -> "SamplingParams":
        """Return the parameters of a message; fields left out have their defaults.

        Raises:
            RequestError: an unknown field, or a value out of range.
        """
        known = [field.name for field in fields(cls)]
        for name in wire:
            if name not in known:
                shown = _shown(name)
                raise RequestError(f"unknown sampling parameter {shown}; known are {', '.join(known)}", field=shown)
        return cls(**wire)  # type: ignore[arg-type]


def _shown(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"  # Python refuses to print the longest
    return repr(value)[:64]
