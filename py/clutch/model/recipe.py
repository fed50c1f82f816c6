"""Which kernels the steps of a model are made of on this GPU."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from clutch.gpu.limits import AdapterInfo, Limits
from clutch.gpu.products import Product, Rows, Tiles
from clutch.model.spec import ModelSpec

PREFILL_TOKENS_PER_THREAD = 8


@dataclass(frozen=True)
class SplitAttention:
    """How a decode step attends (`wgsl/attention_split.wgsl`).

    Args:
        lanes: of a subgroup.
        workgroup: invocations.
        merging: threads that share the splits of four values of a head, when they are merged.
    """

    lanes: int
    workgroup: int
    merging: int


@dataclass(frozen=True)
class TileAttention:
    """How a prefill step attends (`wgsl/attention_tile.wgsl`).

    Args:
        tokens: of a tile.
        keys: that are read at once.
        thread_rows: queries of a thread.
        workgroup: invocations.
    """

    tokens: int
    keys: int
    thread_rows: int
    workgroup: int


@dataclass(frozen=True)
class Decode:
    """A decode step.

    Args:
        products: how each matrix is multiplied with one token of each sequence, by its role: `ROLES`.
        attention: of a fused step; None: norms, attention and its merge are dispatches of their own.
    """

    products: Mapping[str, Rows]
    attention: SplitAttention | None = None


@dataclass(frozen=True)
class Prefill:
    """A prefill step.

    Args:
        product: how every matrix is multiplied with many tokens of a sequence.
        attention: by tiles; None: as a decode step that is not fused.
        most_tokens: that go through one step.
    """

    product: Product
    attention: TileAttention | None
    most_tokens: int


@dataclass(frozen=True)
class Recipe:
    """The choice of kernels.

    Args:
        name: for the page's details.
        decode: one token of each sequence.
        prefill: many tokens of one.
        short: the last tokens of a prompt, when they are few.
    """

    name: str
    decode: Decode
    prefill: Prefill
    short: Prefill

    @property
    def is_int8(self) -> bool:
        """Whether any of its products takes activations as bytes."""
        products = (*self.decode.products.values(), self.prefill.product, self.short.product)
        return any(product.is_int8 for product in products)


QKV, ATTENTION_OUTPUT, GATE_UP, DOWN, LM_HEAD = ROLES = ("qkv", "attention_output", "gate_up", "down", "lm_head")

_PORTABLE_PREFILL = Prefill(Rows(tokens=PREFILL_TOKENS_PER_THREAD), None, most_tokens=32)

PORTABLE = Recipe("portable", Decode(dict.fromkeys(ROLES, Rows())), _PORTABLE_PREFILL, _PORTABLE_PREFILL)
"""Needs no subgroups and no barriers: for the software adapter, and wherever nothing else holds."""

# More lanes to a row hide the latency of memory, until there are more than the GPU holds (measured, H200).
_MANY_THREADS = 150_000
# Activations as bytes: a quarter of a step of the 1.5B shape, little of one of the default model, whose answers they
# change (measured, docs/performance.md).
_INT8_HIDDEN_SIZE = 1024
# Queries of a tile, and values that a tile of keys has (measured, H200).
_TILE_ROWS, _TILE_VALUES = 24, 2048


def recipe_for(spec: ModelSpec, adapter: AdapterInfo, limits: Limits, *, int8: bool | None = None) -> Recipe:
    """Return the recipe for a model on a GPU; `int8` says whether activations are bytes, None: as suits the model."""
    if adapter.is_fallback:
        return PORTABLE
    is_int8 = spec.hidden_size >= _INT8_HIDDEN_SIZE if int8 is None else int8
    decode, attention = _decode(spec, adapter, limits, is_int8), _tile_attention(spec, limits)
    arithmetic = "8-bit activations" if is_int8 and (decode or attention) else "32-bit activations"
    prefill = short = _PORTABLE_PREFILL
    if attention:
        prefill = Prefill(Tiles(is_int8=is_int8), attention, most_tokens=1024)
        short = Prefill(Tiles(32, 32, 4, splits=2, is_int8=is_int8), attention, most_tokens=128)
    return Recipe(
        f"decode: {f'subgroups of {adapter.subgroup_size}' if decode else PORTABLE.name}, "
        f"prefill: {'tiles' if attention else PORTABLE.name}, {arithmetic}",
        decode or PORTABLE.decode,
        prefill,
        short,
    )


def _decode(spec: ModelSpec, adapter: AdapterInfo, limits: Limits, is_int8: bool) -> Decode | None:
    lanes_of_key = spec.head_dim // 8
    is_power_of_two = lanes_of_key & (lanes_of_key - 1) == 0
    staged_bytes = spec.hidden_size * 4 + 4096
    if not (is_power_of_two and lanes_of_key <= adapter.subgroup_size and staged_bytes <= limits.max_workgroup_bytes):
        return None
    is_int8 = is_int8 and spec.intermediate_size * 3 // 2 + 4096 <= limits.max_workgroup_bytes
    n_rows = {
        QKV: (spec.n_heads + 2 * spec.n_kv_heads) * spec.head_dim,
        ATTENTION_OUTPUT: spec.hidden_size,
        GATE_UP: 2 * spec.intermediate_size,
        DOWN: spec.hidden_size,
        LM_HEAD: spec.vocab_size,
    }
    lanes = min(32, adapter.subgroup_size)
    products = {role: _rows(n, lanes, is_int8) for role, n in n_rows.items()}
    return Decode(products, SplitAttention(lanes, 256, merging=8))


def _rows(n_rows: int, most_lanes: int, is_int8: bool) -> Rows:
    lanes = most_lanes
    while lanes > 8 and n_rows // 2 * lanes > _MANY_THREADS:
        lanes //= 2
    # In integer arithmetic a workgroup makes its bytes itself: the larger, the fewer do the same work.
    workgroup = 256 if is_int8 and lanes == most_lanes else 128
    return Rows(lanes, 1, workgroup, "subgroup", is_int8)


def _tile_attention(spec: ModelSpec, limits: Limits) -> TileAttention | None:
    """Return the largest tile that fits: a thread has four queries, of one token and head each."""
    group = spec.n_heads // spec.n_kv_heads
    step = 4 // math.gcd(4, group)
    tokens = max(step, _TILE_ROWS // group // step * step)
    rows, keys = tokens * group, max(16, min(32, _TILE_VALUES // spec.head_dim))
    lanes = math.gcd(16, spec.head_dim // 4)
    size_bytes = 4 * (rows * (spec.head_dim + keys + lanes) + keys * spec.head_dim)
    if size_bytes > limits.max_workgroup_bytes:
        return None
    return TileAttention(tokens, keys, 4, rows // 4 * lanes)
