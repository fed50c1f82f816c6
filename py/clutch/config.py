"""The engine's budgets, checked in one place."""

from dataclasses import dataclass

from clutch.errors import RequestError
from clutch.kv.pool import PAGE_POSITIONS


@dataclass(frozen=True)
class EngineConfig:
    """What the engine may use.

    Args:
        context_length: positions of a session; the model's own limit applies too.
        prefill_tokens: most tokens of one prefill step; activations are sized for it.
        prefill_ms, prefill_ms_software: GPU time that one prefill step should take, on a real and on a software
            adapter; Stop is seen between steps.
        attention_splits: most pieces the context is cut into for one head.
        steps_in_flight: most decode steps submitted before the first is read (1 on a software adapter: there a
            step takes longer than reading it back).
        upload_bytes: most bytes of a weight uploaded in one piece; Stop is seen between pieces.
        prompt_bytes: longest prompt text, in UTF-8.
    """

    context_length: int = 2048
    prefill_tokens: int = 32
    prefill_ms: int = 25
    prefill_ms_software: int = 1000
    attention_splits: int = 32
    steps_in_flight: int = 2
    upload_bytes: int = 16 << 20
    prompt_bytes: int = 1 << 20

    def __post_init__(self) -> None:
        """Check the numbers against each other.

        Raises:
            RequestError: one is out of range.
        """
        for name, low, multiple in (
            ("context_length", PAGE_POSITIONS, PAGE_POSITIONS),
            ("prefill_tokens", 8, 8),
            ("prefill_ms", 1, 1),
            ("prefill_ms_software", 1, 1),
            ("attention_splits", 1, 1),
            ("steps_in_flight", 1, 1),
            ("upload_bytes", 1 << 16, 4),
            ("prompt_bytes", 1, 1),
        ):
            value = getattr(self, name)
            if value < low or value % multiple:
                raise RequestError(
                    f"{name} is {value}; it must be at least {low} and a multiple of {multiple}.",
                    field=name,
                    value=value,
                )
