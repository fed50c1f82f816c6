"""Which tensors an architecture has, in which shapes, and the check of a file against that.

Shapes are in GGUF order, the length of a row first: a matrix that maps n inputs to m outputs is (n, m).
Source: llama.cpp's tensor names (`src/llama-arch.cpp`).
"""

from collections.abc import Callable
from dataclasses import dataclass

from clutch.formats.gguf import GGUFHeader
from clutch.formats.quants import SUPPORTED, QuantType
from clutch.model.metadata_view import unsupported, value_error
from clutch.model.spec import ModelSpec

EMBEDDING = "token_embd.weight"
OUTPUT = "output.weight"
OUTPUT_NORM = "output_norm.weight"

Shapes = dict[str, tuple[int, ...]]


def _llama(spec: ModelSpec) -> Shapes:
    """The dense model of LLaMA (Touvron et al. 2023) with grouped-query attention, without biases."""
    hidden, intermediate = spec.hidden_size, spec.intermediate_size
    q_size, kv_size = spec.n_heads * spec.head_dim, spec.n_kv_heads * spec.head_dim
    layer: Shapes = {
        "attn_norm": (hidden,),
        "attn_q": (hidden, q_size),
        "attn_k": (hidden, kv_size),
        "attn_v": (hidden, kv_size),
        "attn_output": (q_size, hidden),
        "ffn_norm": (hidden,),
        "ffn_gate": (hidden, intermediate),
        "ffn_up": (hidden, intermediate),
        "ffn_down": (intermediate, hidden),
    }
    shapes: Shapes = {EMBEDDING: (hidden, spec.vocab_size), OUTPUT_NORM: (hidden,)}
    if not spec.tied_output:
        shapes[OUTPUT] = (hidden, spec.vocab_size)
    for index in range(spec.n_layers):
        shapes |= {f"blk.{index}.{part}.weight": shape for part, shape in layer.items()}
    return shapes


def _qwen2(spec: ModelSpec) -> Shapes:
    """The dense model of Qwen2 (Yang et al. 2024): as llama, with biases on q, k and v."""
    q_size, kv_size = spec.n_heads * spec.head_dim, spec.n_kv_heads * spec.head_dim
    biases: Shapes = {"attn_q": (q_size,), "attn_k": (kv_size,), "attn_v": (kv_size,)}
    layers = range(spec.n_layers)
    return _llama(spec) | {f"blk.{i}.{part}.bias": shape for i in layers for part, shape in biases.items()}


@dataclass(frozen=True)
class Architecture:
    """What sets an architecture apart.

    Args:
        shapes: its tensors.
        has_qkv_bias: q, k and v get a bias each.
        pairs_halves: RoPE turns dimensions i and i + head_dim / 2 of the file's q and k together ("NEOX"), not the
            neighbours 2 i and 2 i + 1.
    """

    shapes: Callable[[ModelSpec], Shapes]
    has_qkv_bias: bool = False
    pairs_halves: bool = False


ARCHITECTURES = {
    "llama": Architecture(_llama),
    "qwen2": Architecture(_qwen2, has_qkv_bias=True, pairs_halves=True),
}
"""The architectures we run."""


def check_tensors(header: GGUFHeader, spec: ModelSpec) -> None:
    """Check that a file has exactly the tensors of its architecture.

    Raises:
        ModelFormatError: one is missing or has another shape than the spec implies.
        UnsupportedModelError: there are more, or one is stored in a type that we have no kernel for.
    """
    shapes = ARCHITECTURES[spec.architecture].shapes(spec)
    for name, shape in shapes.items():
        tensor = header.tensors.get(name)
        if tensor is None:
            raise value_error(name, f"a tensor of shape {shape}", "no such tensor")
        if tensor.shape != shape:
            raise value_error(name, f"shape {shape}", f"shape {tensor.shape}")
        # Norms and biases are a thousandth of the weights: every file has them in full, and our kernels count on it.
        allowed = SUPPORTED if len(shape) > 1 else {QuantType.F32}
        if tensor.type not in allowed:
            names = ", ".join(sorted(quant.name for quant in allowed))
            raise unsupported(f"type of {name}", tensor.type.name, f"one of: {names}")
    for name in header.tensors:
        if name not in shapes:
            raise unsupported("tensor", name, f"only those of a plain {spec.architecture} model")
