"""Which kernels the steps of a model are made of on this GPU."""

from collections.abc import Mapping
from dataclasses import dataclass

from clutch.gpu.limits import AdapterInfo, Limits
from clutch.gpu.products import Product, Rows
from clutch.model.spec import ModelSpec

PREFILL_TOKENS_PER_THREAD = 8


@dataclass(frozen=True)
class Attention:
    """How a decode step attends (`wgsl/attention_split.wgsl`).

    Args:
        lanes: of a subgroup.
        workgroup: invocations.
    """

    lanes: int
    workgroup: int


@dataclass(frozen=True)
class Recipe:
    """The choice of kernels.

    Args:
        name: for the page's details.
        decode: how each matrix is multiplied with one token of each sequence, by its role: `ROLES`.
        prefill: how every matrix is multiplied with many tokens of one.
        attention: of a fused decode step; None: norms, attention and its merge are dispatches of their own.
    """

    name: str
    decode: Mapping[str, Rows]
    prefill: Product
    attention: Attention | None = None


QKV, ATTENTION_OUTPUT, GATE_UP, DOWN, LM_HEAD = ROLES = ("qkv", "attention_output", "gate_up", "down", "lm_head")

PORTABLE = Recipe("portable", dict.fromkeys(ROLES, Rows()), Rows(tokens=PREFILL_TOKENS_PER_THREAD))
"""Needs no subgroups and no barriers: for the software adapter, and wherever nothing else holds."""

# More lanes to a row hide the latency of memory, until there are more than the GPU holds (measured, H200).
_MANY_THREADS = 150_000


def recipe_for(spec: ModelSpec, adapter: AdapterInfo, limits: Limits) -> Recipe:
    """Return the recipe for a model on a GPU."""
    if adapter.is_fallback or not fits(spec, adapter, limits):
        return PORTABLE
    lanes = min(32, adapter.subgroup_size)
    n_rows = {
        QKV: (spec.n_heads + 2 * spec.n_kv_heads) * spec.head_dim,
        ATTENTION_OUTPUT: spec.hidden_size,
        GATE_UP: 2 * spec.intermediate_size,
        DOWN: spec.hidden_size,
        LM_HEAD: spec.vocab_size,
    }
    decode = {role: _rows(n, lanes) for role, n in n_rows.items()}
    return Recipe(f"subgroups of {lanes}", decode, PORTABLE.prefill, Attention(lanes, 256))


def fits(spec: ModelSpec, adapter: AdapterInfo, limits: Limits) -> bool:
    """Return whether the kernels that use subgroups can run."""
    lanes_of_key = spec.head_dim // 8
    is_power_of_two = lanes_of_key & (lanes_of_key - 1) == 0
    staged_bytes = max(spec.hidden_size, spec.n_heads * spec.head_dim) * 4 + 4096
    return is_power_of_two and lanes_of_key <= adapter.subgroup_size and staged_bytes <= limits.max_workgroup_bytes


def _rows(n_rows: int, most_lanes: int) -> Rows:
    lanes = most_lanes
    while lanes > 8 and n_rows // 2 * lanes > _MANY_THREADS:
        lanes //= 2
    return Rows(lanes, 2 if n_rows // 2 * lanes > _MANY_THREADS else 1, 128, "subgroup")
