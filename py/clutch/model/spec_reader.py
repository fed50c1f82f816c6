"""Reads a model's numbers from its GGUF header and checks them before a weight of it is fetched.

What comes out can be run: the numbers are consistent, every tensor is there in the shape that they imply and in a
type that we have a kernel for. A file that contradicts itself is a ModelFormatError, a sound one that we cannot run
an UnsupportedModelError.
Source: llama.cpp's key names (`src/llama-arch.cpp`) and defaults (`src/llama-model.cpp`).
"""

import math

from clutch.formats.gguf import GGUFHeader
from clutch.kv.pool import PAGE_POSITIONS
from clutch.model.metadata_view import MetadataView, unsupported, value_error
from clutch.model.spec import ModelSpec
from clutch.model.tensor_set import ARCHITECTURES, EMBEDDING, OUTPUT, check_tensors

_BLOCK = 32
"""Weights in a block of every quantised type we run; a GEMV reads whole blocks of its input."""
_HEAD_DIMS = range(16, 257, 4)
"""Attention reads a head as vec4; its workgroup memory holds 256 values."""
_MAX_LAYERS = 512
_MAX_WIDTH = 1 << 20
_MAX_CONTEXT = 1 << 24
_DEFAULT_ROPE_THETA = 10000.0


def read_spec(header: GGUFHeader) -> ModelSpec:
    """Read and check a model's numbers and tensors.

    Raises:
        ModelFormatError: a number or tensor is missing, out of range or contradicts another.
        UnsupportedModelError: the file is sound, but needs what we do not have.
    """
    view = MetadataView(header.metadata)
    arch = view.text("general.architecture")
    if arch not in ARCHITECTURES:
        raise unsupported("architecture", arch, f"one of: {', '.join(ARCHITECTURES)}")
    _refuse_variants(view, header, arch)
    hidden_size = view.integer(f"{arch}.embedding_length", 1, _MAX_WIDTH)
    n_heads = view.integer(f"{arch}.attention.head_count", 1, _MAX_WIDTH)
    head_dim = _head_dim(view, arch, hidden_size, n_heads)
    vocab_size = _vocab_size(view, header, arch)
    spec = ModelSpec(
        architecture=arch,
        name=view.text("general.name", arch),
        n_layers=view.integer(f"{arch}.block_count", 1, _MAX_LAYERS),
        hidden_size=hidden_size,
        intermediate_size=view.integer(f"{arch}.feed_forward_length", 1, _MAX_WIDTH),
        n_heads=n_heads,
        n_kv_heads=view.integer(f"{arch}.attention.head_count_kv", 1, n_heads, n_heads),
        head_dim=head_dim,
        rope_theta=view.real(f"{arch}.rope.freq_base", 0, math.inf, _DEFAULT_ROPE_THETA),
        rope_dim=view.integer(f"{arch}.rope.dimension_count", 1, head_dim, head_dim),
        rms_eps=view.real(f"{arch}.attention.layer_norm_rms_epsilon", 0, 1e-2),
        context_length=view.integer(f"{arch}.context_length", 1, _MAX_CONTEXT),
        vocab_size=vocab_size,
        tied_output=OUTPUT not in header.tensors,
        has_qkv_bias=ARCHITECTURES[arch].has_qkv_bias,
        pairs_halves=ARCHITECTURES[arch].pairs_halves,
        tensor_types={tensor.name: tensor.type for tensor in header.tensors.values()},
    )
    _check_numbers(spec)
    check_tensors(header, spec)
    return spec


def _head_dim(view: MetadataView, arch: str, hidden_size: int, n_heads: int) -> int:
    key = f"{arch}.attention.key_length"
    head_dim = view.optional_integer(key, 1, _MAX_WIDTH)
    if head_dim is None:
        if hidden_size % n_heads:
            raise value_error(f"{arch}.attention.head_count", f"a divisor of {hidden_size}", n_heads)
        head_dim = hidden_size // n_heads
    value_dim = view.integer(f"{arch}.attention.value_length", 1, _MAX_WIDTH, head_dim)
    if value_dim != head_dim:
        raise unsupported("value head size", value_dim, f"that of the keys, {head_dim}")
    return head_dim


def _vocab_size(view: MetadataView, header: GGUFHeader, arch: str) -> int:
    """Return the rows of the embedding, which are the truth; the number in the metadata is optional."""
    embedding = header.tensors.get(EMBEDDING)
    if embedding is None or len(embedding.shape) != 2:
        raise value_error(EMBEDDING, "a matrix", "none" if embedding is None else f"shape {embedding.shape}")
    rows = embedding.shape[1]
    claimed = view.integer(f"{arch}.vocab_size", 1, _MAX_WIDTH, rows)
    if claimed != rows:
        raise value_error(f"{arch}.vocab_size", f"{rows}, the rows of {EMBEDDING}", claimed)
    return rows


def _refuse_variants(view: MetadataView, header: GGUFHeader, arch: str) -> None:
    """Refuse files whose keys change the arithmetic, or that hold only a part of the model."""
    pieces = view.integer("split.count", 0, 1 << 16, 1)
    if pieces > 1:
        raise unsupported("number of files", pieces, "a model in one file")
    experts = view.integer(f"{arch}.expert_count", 0, 1 << 16, 0)
    if experts:
        raise unsupported("number of experts", experts, "a dense model")
    scaling = view.text(f"{arch}.rope.scaling.type", "none")
    if scaling != "none":
        raise unsupported("RoPE scaling", scaling, "none")
    # llama.cpp reads a factor without a type as linear scaling; 0 and 1 mean none.
    is_typed = f"{arch}.rope.scaling.type" in header.metadata
    for key in f"{arch}.rope.scaling.factor", f"{arch}.rope.scale_linear":
        factor = header.metadata.get(key, 1.0)
        if not is_typed and factor not in (0.0, 1.0):
            raise unsupported("RoPE scaling", f"linear, {factor}", "none")
    if "rope_freqs.weight" in header.tensors:
        raise unsupported("RoPE scaling", "by rope_freqs.weight", "none")


def _check_numbers(spec: ModelSpec) -> None:
    """Check what the numbers owe each other, then what our kernels ask of them."""
    if spec.n_heads % spec.n_kv_heads:
        key = f"{spec.architecture}.attention.head_count_kv"
        raise value_error(key, f"a divisor of {spec.n_heads}", spec.n_kv_heads)
    if spec.head_dim not in _HEAD_DIMS:
        expected = f"a multiple of {_HEAD_DIMS.step} from {_HEAD_DIMS[0]} to {_HEAD_DIMS[-1]}"
        raise unsupported("head size", spec.head_dim, expected)
    if spec.context_length < PAGE_POSITIONS:
        raise unsupported("context length", spec.context_length, f"at least {PAGE_POSITIONS}")
    if spec.rope_dim != spec.head_dim:
        raise unsupported("number of RoPE dimensions", spec.rope_dim, f"the head size, {spec.head_dim}")
    widths = {
        "hidden size": spec.hidden_size,
        "intermediate size": spec.intermediate_size,
        "width of all heads": spec.n_heads * spec.head_dim,
    }
    for what, width in widths.items():
        if width % _BLOCK:
            raise unsupported(what, width, f"a multiple of {_BLOCK}")
