"""The memory plan: bytes of every buffer before the first is made, checked against the GPU's limits."""

from dataclasses import dataclass

from clutch.config import EngineConfig
from clutch.errors import OutOfMemory
from clutch.gpu.limits import Limits
from clutch.gpu.products import ANY_QUANTISED
from clutch.gpu.step import CANDIDATE_BYTES, MAX_SEQUENCES, QUANTISED_BLOCK_BYTES, RESULT_BYTES, SLOT_BYTES
from clutch.kv.layout import Q8, KVLayout
from clutch.kv.pool import PAGE_POSITIONS
from clutch.model.recipe import LM_HEAD, PORTABLE, Recipe
from clutch.model.spec import ModelSpec
from clutch.model.tensor_set import EMBEDDING, OUTPUT
from clutch.model.weights import BLOCK, WeightPlan

MIB = 1 << 20


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes by purpose; `scratch` names each buffer of the activations and the step.

    `context_length` is of a session, `pool_positions` of all of them together; `attention_splits` is into how many
    pieces the context is cut for one head, `prefill_tokens` the most tokens of a prefill step.
    """

    context_length: int
    pool_positions: int
    kv: KVLayout
    weights_bytes: int
    n_layers: int
    attention_splits: int
    prefill_tokens: int
    upload_bytes: int
    scratch: dict[str, int]

    @property
    def kv_layer_bytes(self) -> int:
        """The KV pool of a layer."""
        return self.pool_positions * self.kv.position_bytes

    @property
    def n_readbacks(self) -> int:
        """Steps whose results can be on their way."""
        return self.scratch["readbacks"] // (MAX_SEQUENCES * RESULT_BYTES)

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
            "kv_format": self.kv.format,
            "pool_positions": self.pool_positions,
            "scratch": sum(self.scratch.values()),
            "total": self.total_bytes,
            "peak": self.total_bytes + self.upload_bytes,
        }


def plan_memory(
    spec: ModelSpec, weights: WeightPlan, config: EngineConfig, limits: Limits, recipe: Recipe = PORTABLE
) -> MemoryPlan:
    """Return the plan for `spec`; the kernels of `recipe` say how large some of the activations are.

    Raises:
        ContextLengthError, RequestError, UnsupportedModelError: the context, the pool or its format cannot be had.
        OutOfMemory: a buffer is larger than the GPU allows; names it, and the context that would fit.
    """
    context_length = config.context_of(spec.context_length)
    kv = KVLayout(config.kv_format, spec.n_kv_heads, spec.head_dim)
    heads, splits = spec.n_heads, config.attention_splits
    prefill_tokens = min(config.prefill_tokens, recipe.prefill.most_tokens)
    tokens = max(prefill_tokens, MAX_SEQUENCES)
    # Tiles attend without pieces.
    tokens_in_pieces = tokens if recipe.prefill.attention is None else MAX_SEQUENCES
    is_bytes = recipe.prefill.product.takes_bytes(ANY_QUANTISED)
    widest = max(spec.hidden_size, spec.intermediate_size, heads * spec.head_dim)
    # A candidate of each workgroup of the head.
    output = weights.matrices[EMBEDDING if spec.tied_output else OUTPUT]
    n_candidates = sum(recipe.decode.products[LM_HEAD].workgroups(slab.rows) for slab in output.slabs)
    # A decode step of every session may be in flight, and a chunk of one prompt beside them.
    n_readbacks = config.steps_in_flight + 1
    largest_raw = max(part.tensor.size_bytes for part, _ in weights.uploads())
    largest_row = max(part.row_bytes for part, _ in weights.uploads())
    plan = MemoryPlan(
        context_length=context_length,
        pool_positions=config.pool_of(context_length),
        kv=kv,
        weights_bytes=weights.size_bytes,
        n_layers=spec.n_layers,
        attention_splits=splits,
        prefill_tokens=prefill_tokens,
        # At least a row; 16 bytes more, because a repack kernel may read the word behind its last block.
        upload_bytes=max(min(config.upload_bytes, largest_raw), largest_row) + 16,
        scratch={
            "x": tokens * spec.hidden_size * 4,
            "h": tokens * spec.hidden_size * 4,
            "q": tokens * heads * spec.head_dim * 4,
            "attended": tokens * heads * spec.head_dim * 4,
            "mlp": tokens * spec.intermediate_size * 4,
            "fresh": tokens * 2 * spec.n_kv_heads * spec.head_dim * 4 if config.kv_format == Q8 else 16,
            # Sums, the largest score and the norm, and two words that keep vectors of four aligned.
            "pieces": tokens_in_pieces * heads * splits * (spec.head_dim + 4) * 4,
            "bytes": tokens * widest // BLOCK * QUANTISED_BLOCK_BYTES if is_bytes else 16,
            "logits": MAX_SEQUENCES * spec.vocab_size * 4,
            "candidates": MAX_SEQUENCES * n_candidates * CANDIDATE_BYTES,
            "rope": context_length * spec.head_dim // 2 * 2 * 4,
            "tokens": MAX_SEQUENCES * context_length * 4,
            "block table": MAX_SEQUENCES * context_length // PAGE_POSITIONS * 4,
            "page": kv.page_bytes,
            "result": MAX_SEQUENCES * RESULT_BYTES,
            "step uniforms": (n_readbacks + 1) * SLOT_BYTES,
            "readbacks": n_readbacks * MAX_SEQUENCES * RESULT_BYTES,
            # A row of logits or activations, or a page of all layers.
            "row readback": max(spec.vocab_size * 4, spec.hidden_size * 4, spec.n_layers * kv.page_bytes),
        },
    )
    _check(plan, weights, config, limits)
    return plan


def advise(plan: MemoryPlan, config: EngineConfig, refused: OutOfMemory, allocated_bytes: int) -> OutOfMemory:
    """Return `refused` with the context length or the pool that would have fitted; the KV pool is allocated last.

    Args:
        plan: that did not fit.
        config: that the plan was made from.
        refused: by the GPU, at one of the plan's buffers.
        allocated_bytes: what had been allocated until then.
    """
    # The staging buffer of the upload comes on top for a while.
    room = allocated_bytes - (plan.total_bytes - plan.kv_bytes) - plan.upload_bytes
    name, fits = _fitting(plan, config, max(0, room))
    hint = _smaller(name, fits) if fits else "Close other tabs, or choose a smaller model."
    return OutOfMemory(refused.message, hint=hint, **{**refused.data, f"{name}_that_fits": fits})


def _check(plan: MemoryPlan, weights: WeightPlan, config: EngineConfig, limits: Limits) -> None:
    limit = limits.largest_buffer_bytes
    largest = max(plan.scratch.items(), key=lambda item: item[1])
    for name, size, hint in (
        (*weights.largest_buffer, "Choose a smaller model."),
        # Before the scratch: what else grows with the context is never larger than this.
        ("KV pool of a layer", plan.kv_layer_bytes, _smaller(*_fitting(plan, config, limit * plan.n_layers))),
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


def _fitting(plan: MemoryPlan, config: EngineConfig, kv_bytes: int) -> tuple[str, int]:
    """Return what makes the KV pool smaller, and its largest value with which the pool takes no more than `kv_bytes`.

    A pool that was asked for has its size whatever the context is; any other shrinks with the context.
    """
    name = "context_length" if config.pool_positions is None else "pool_positions"
    value: int = getattr(plan, name)
    return name, kv_bytes * value // plan.kv_bytes // PAGE_POSITIONS * PAGE_POSITIONS


def _smaller(name: str, fits: int) -> str:
    return f"Choose a {'pool' if name == 'pool_positions' else 'context length'} of {fits} or less."
