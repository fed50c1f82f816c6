"""The memory plan: bytes of every buffer before the first is made, checked against the GPU's limits."""

from dataclasses import dataclass

from clutch.config import EngineConfig
from clutch.errors import OutOfMemory
from clutch.gpu.limits import Limits
from clutch.gpu.step import SLOT_BYTES
from clutch.kv.pool import PAGE_POSITIONS
from clutch.model.spec import ModelSpec
from clutch.model.weights import WeightPlan

MIB = 1 << 20
RESULT_BYTES = 16


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes by purpose; `scratch` names each buffer of the activations and the step."""

    context_length: int
    weights_bytes: int
    kv_layer_bytes: int
    n_layers: int
    upload_bytes: int
    scratch: dict[str, int]

    @property
    def kv_bytes(self) -> int:
        """The KV pool of all layers."""
        return self.kv_layer_bytes * self.n_layers

    @property
    def total_bytes(self) -> int:
        """What the model holds once it is loaded."""
        return self.weights_bytes + self.kv_bytes + sum(self.scratch.values())

    def to_wire(self) -> dict[str, object]:
        """Return the JSON-able form; `peak` is while loading."""
        return {
            "weights": self.weights_bytes,
            "kv": self.kv_bytes,
            "scratch": sum(self.scratch.values()),
            "total": self.total_bytes,
            "peak": self.total_bytes + self.upload_bytes,
        }


def plan_memory(spec: ModelSpec, weights: WeightPlan, config: EngineConfig, limits: Limits) -> MemoryPlan:
    """Return the plan for `spec`, with the context cut to what the model allows.

    Raises:
        OutOfMemory: a buffer is larger than the GPU allows; names it, and the context that would fit.
    """
    context_length = min(config.context_length, spec.context_length // PAGE_POSITIONS * PAGE_POSITIONS)
    tokens, heads, splits = config.prefill_tokens, spec.n_heads, config.attention_splits
    largest_raw = max(part.tensor.size_bytes for part, _ in weights.uploads())
    largest_row = max(plan.row_bytes for plan in weights.matrices.values())
    plan = MemoryPlan(
        context_length=context_length,
        weights_bytes=weights.size_bytes,
        kv_layer_bytes=context_length * spec.n_kv_heads * spec.head_dim * 2 * 2,
        n_layers=spec.n_layers,
        # At least a row; 16 bytes more, because a repack kernel may read the word behind its last block.
        upload_bytes=max(min(config.upload_bytes, largest_raw), largest_row) + 16,
        scratch={
            "x": tokens * spec.hidden_size * 4,
            "h": tokens * spec.hidden_size * 4,
            "q": tokens * heads * spec.head_dim * 4,
            "attended": tokens * heads * spec.head_dim * 4,
            "mlp": tokens * spec.intermediate_size * 4,
            "attention sums": tokens * heads * splits * spec.head_dim * 4,
            "attention norms": tokens * heads * splits * 2 * 4,
            "logits": spec.vocab_size * 4,
            "rope": context_length * spec.head_dim // 2 * 2 * 4,
            "tokens": context_length * 4,
            "block table": context_length // PAGE_POSITIONS * 4,
            "result": RESULT_BYTES,
            "step uniforms": (config.steps_in_flight + 1) * SLOT_BYTES,
            "readbacks": config.steps_in_flight * RESULT_BYTES,
            "row readback": max(spec.vocab_size, spec.hidden_size) * 4,
        },
    )
    _check(plan, weights, limits)
    return plan


def advise(plan: MemoryPlan, refused: OutOfMemory, allocated_bytes: int) -> OutOfMemory:
    """Return `refused` with the context length that would have fitted; the KV pool is allocated last.

    Args:
        plan: that did not fit.
        refused: by the GPU, at one of the plan's buffers.
        allocated_bytes: what had been allocated until then.
    """
    # The staging buffer of the upload comes on top for a while.
    room = allocated_bytes - (plan.total_bytes - plan.kv_bytes) - plan.upload_bytes
    fits = max(0, room) * plan.context_length // plan.kv_bytes // PAGE_POSITIONS * PAGE_POSITIONS
    hint = f"Choose a context length of {fits} or less." if fits else "Close other tabs, or choose a smaller model."
    return OutOfMemory(refused.message, hint=hint, **{**refused.data, "context_length_that_fits": fits})


def _check(plan: MemoryPlan, weights: WeightPlan, limits: Limits) -> None:
    limit = limits.largest_buffer_bytes
    largest = max(plan.scratch.items(), key=lambda item: item[1])
    for name, size, hint in (
        (*weights.largest_buffer, "Choose a smaller model."),
        # Before the scratch: what else grows with the context is never larger than this.
        ("KV pool of a layer", plan.kv_layer_bytes, _smaller_context(plan, limit)),
        (*largest, "Choose a smaller model."),
    ):
        if size > limit:
            raise OutOfMemory(
                f"{name} needs {size / MIB:.0f} MiB, but this GPU allows {limit / MIB:.0f} MiB in one buffer.",
                hint=hint,
                buffer=name,
                asked_bytes=size,
                limit_bytes=limit,
            )


def _smaller_context(plan: MemoryPlan, limit: int) -> str:
    fits = limit * plan.context_length // plan.kv_layer_bytes // PAGE_POSITIONS * PAGE_POSITIONS
    return f"Choose a context length of {fits} or less."
