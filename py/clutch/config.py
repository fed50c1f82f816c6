"""The engine's budgets, checked in one place."""

from dataclasses import dataclass

from clutch.errors import ContextLengthError, RequestError
from clutch.kv.layout import F16, Q8
from clutch.kv.pool import PAGE_POSITIONS

KV_FORMATS = (F16, Q8)


@dataclass(frozen=True)
class EngineConfig:
    """What the engine may use.

    Args:
        context_length: positions of a session, or as many as the model allows.
        asked_context_length: instead of it, when somebody asked for just so many; None when nobody did.
        pool_positions: positions of all sessions together; None for `pool_contexts` times the context.
        pool_contexts: that many.
        kv_format: how keys and values are kept, one of `KV_FORMATS`.
        prefill_tokens: most tokens of one prefill step, if its kernels take so many; activations are sized for it.
        prefill_ms, prefill_ms_software: GPU time that one prefill step should take, on a real and on a software
            adapter; Stop is seen between steps.
        attention_splits: most pieces the context is cut into for one head.
        steps_in_flight: most decode steps submitted before the first is read, if they are short (1 on a software
            adapter: there a step takes longer than reading it back).
        upload_bytes: most bytes of a weight uploaded in one piece; Stop is seen between pieces.
        prompt_bytes: longest prompt text, in UTF-8.
        tuning_ms: that a load may take to find the fastest kernels; 0: none. A software adapter takes none either.
    """

    context_length: int = 2048
    asked_context_length: int | None = None
    pool_positions: int | None = None
    pool_contexts: int = 2
    kv_format: str = F16
    prefill_tokens: int = 1024
    prefill_ms: int = 50
    prefill_ms_software: int = 1000
    attention_splits: int = 32
    steps_in_flight: int = 8
    upload_bytes: int = 16 << 20
    prompt_bytes: int = 1 << 20
    tuning_ms: int = 300

    def __post_init__(self) -> None:
        """Check the numbers against each other.

        Raises:
            RequestError: one is out of range.
        """
        if self.kv_format not in KV_FORMATS:
            raise RequestError(f"kv_format is {self.kv_format!r}; known: {', '.join(KV_FORMATS)}.", field="kv_format")
        for name, low, multiple in (
            ("context_length", PAGE_POSITIONS, PAGE_POSITIONS),
            ("asked_context_length", PAGE_POSITIONS, PAGE_POSITIONS),
            ("pool_positions", PAGE_POSITIONS, PAGE_POSITIONS),
            ("pool_contexts", 1, 1),
            ("prefill_tokens", 8, 8),
            ("prefill_ms", 1, 1),
            ("prefill_ms_software", 1, 1),
            ("attention_splits", 1, 1),
            ("steps_in_flight", 1, 1),
            ("upload_bytes", 1 << 16, 4),
            ("prompt_bytes", 1, 1),
            ("tuning_ms", 0, 1),
        ):
            value = getattr(self, name)
            if value is not None and (value < low or value % multiple):
                raise RequestError(
                    f"{name} is {value}; it must be at least {low} and a multiple of {multiple}.",
                    field=name,
                    value=value,
                )

    def context_of(self, model_context_length: int) -> int:
        """Return the positions of a session with a model that has `model_context_length`.

        Raises:
            ContextLengthError: more were asked for than the model has.
        """
        asked = self.asked_context_length
        most = model_context_length // PAGE_POSITIONS * PAGE_POSITIONS
        if asked is None:
            return min(self.context_length, most)
        if asked > most:
            raise ContextLengthError(
                f"A context of {asked} positions was asked for; the model has {model_context_length}.",
                hint=f"Choose {most} or less.",
                context_length=asked,
                model_context_length=model_context_length,
            )
        return asked

    def pool_of(self, context_length: int) -> int:
        """Return the positions of the pool.

        Raises:
            RequestError: fewer were asked for than one session may have.
        """
        if self.pool_positions is None:
            return self.pool_contexts * context_length
        if self.pool_positions < context_length:
            raise RequestError(
                f"pool_positions is {self.pool_positions}; one session alone may have {context_length}.",
                hint="Choose more pool positions, or a shorter context.",
                field="pool_positions",
                value=self.pool_positions,
            )
        return self.pool_positions
