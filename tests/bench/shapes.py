"""Shapes of real models, for synthetic ones of the same size and the same quantisations."""

from collections.abc import Callable
from dataclasses import dataclass

from clutch.formats.quants import QuantType


@dataclass(frozen=True)
class Shape:
    """A model without its weights.

    Args:
        name: for people.
        vocabulary: as in `tests.support.vocabularies`; its first `vocab_size` tokens.
        type_of: the quantisation of a matrix, by its name ("attn_v"; "token_embd", "output") and its layer.
    """

    name: str
    architecture: str
    n_layers: int
    hidden: int
    intermediate: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    context_length: int
    rope_theta: float
    rms_eps: float
    vocabulary: str
    vocab_size: int
    tied: bool
    type_of: Callable[[str, int], QuantType]


def q4_k_m(n_layers: int) -> Callable[[str, int], QuantType]:
    """Return the mix of llama.cpp's Q4_K_M (`llama_tensor_get_type` in `src/llama-quant.cpp`) for wide enough rows."""

    def type_of(name: str, layer: int) -> QuantType:
        eighth = n_layers // 8
        has_more_bits = layer < eighth or layer >= 7 * n_layers // 8 or (layer - eighth) % 3 == 2
        if name == "output" or (name in ("attn_v", "ffn_down") and has_more_bits):
            return QuantType.Q6_K
        return QuantType.Q4_K

    return type_of


def _q4_1(name: str, layer: int) -> QuantType:
    return QuantType.Q8_0 if name == "token_embd" else QuantType.Q4_1


SHAPES = {
    "r1-1.5b": Shape(
        name="DeepSeek-R1-Distill-Qwen-1.5B",
        architecture="qwen2",
        n_layers=28,
        hidden=1536,
        intermediate=8960,
        n_heads=12,
        n_kv_heads=2,
        head_dim=128,
        context_length=131_072,
        rope_theta=10_000.0,
        rms_eps=1e-6,
        vocabulary="dsr1qwen",
        vocab_size=151_936,
        tied=False,
        type_of=q4_k_m(28),
    ),
    "smollm2-135m": Shape(
        name="SmolLM2-135M-Instruct",
        architecture="llama",
        n_layers=30,
        hidden=576,
        intermediate=1536,
        n_heads=9,
        n_kv_heads=3,
        head_dim=64,
        context_length=8192,
        rope_theta=100_000.0,
        rms_eps=1e-5,
        vocabulary="smollm2",
        vocab_size=49_152,
        tied=True,
        type_of=_q4_1,
    ),
}
