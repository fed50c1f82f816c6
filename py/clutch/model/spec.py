"""The numbers of a model. A `ModelSpec` that exists can be run: `spec_reader` has checked it against its file."""

from dataclasses import dataclass

from clutch.formats.quants import QuantType


@dataclass(frozen=True)
class ModelSpec:
    """The numbers of one model. Sizes count elements."""

    architecture: str
    name: str
    n_layers: int
    hidden_size: int
    intermediate_size: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    rope_theta: float
    rope_dim: int
    rms_eps: float
    context_length: int
    vocab_size: int
    tied_output: bool
    """The output matrix is the embedding."""
    has_qkv_bias: bool
    pairs_halves: bool
    """RoPE turns dimensions i and i + head_dim / 2 of the file's q and k together; see `tensor_set.Architecture`."""
    tensor_types: dict[str, QuantType]
    """How each tensor is stored, by its name in the file."""
