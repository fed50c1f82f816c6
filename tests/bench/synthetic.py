"""A model of a real one's shape, quantisations and vocabulary with random weights, for speed runs.

Every activation stays finite and of the order of one, an answer wanders instead of repeating a few tokens, and no
control token is ever the likeliest: an answer is nonsense, and as long as it was asked to be.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from clutch.formats.quants import QuantType, row_size_bytes
from tests.bench.shapes import SHAPES, Shape
from tests.support.gguf_writer import Place, Typed, ValueType, write_gguf
from tests.support.random_weights import random_weights
from tests.support.vocabularies import TOKENS, TYPES, metadata_of

_PIECE_BYTES = 16 << 20
_NORMAL = 1
# Standard deviation of a matrix's output for a normalised input. What the tokens of a context have in common comes
# through attention: it stays small, or every token would be followed by the same one.
_GAINS = {
    "attn_q": 1.5,
    "attn_k": 1.5,
    "attn_v": 0.7,
    "attn_output": 0.5,
    "ffn_gate": 1.6,
    "ffn_up": 1.6,
    "ffn_down": 1.0,
    "token_embd": 3.0,
    "output": 3.0,
}
_BIAS_STD = 0.1


def write_synthetic_model(path: Path, shape: Shape, *, seed: int = 0) -> Path:
    """Write the file, a piece at a time; the same arguments give the same bytes."""
    metadata = _metadata(shape)
    loud = np.array(metadata[TYPES].value) == _NORMAL  # type: ignore[attr-defined]
    random = np.random.Generator(np.random.SFC64(seed))
    chosen = "token_embd.weight" if shape.tied else "output.weight"

    def pieces(place: Place) -> Iterator[bytes]:
        quant = QuantType(place.type_id)
        if len(place.shape) == 1:
            yield _vector(random, place)
            return
        columns, rows = place.shape
        std = _GAINS[_part(place.name)] / columns**0.5
        step = max(1, _PIECE_BYTES // row_size_bytes(quant, columns))
        for first in range(0, rows, step):
            n_rows = min(step, rows - first)
            blocks = random_weights(random, quant, n_rows * columns, std).reshape(n_rows, -1)
            if place.name == chosen:
                # Bytes of 0 are weights of 0 in every quantisation.
                blocks[~loud[first : first + n_rows]] = 0
            yield blocks.tobytes()

    write_gguf(path, metadata, [(place, pieces(place)) for place in places(shape)])
    return path


def places(shape: Shape) -> list[Place]:
    """Return the tensors in the order of the file."""
    q_size, kv_size = shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim
    matrices = {
        "attn_q": (shape.hidden, q_size),
        "attn_k": (shape.hidden, kv_size),
        "attn_v": (shape.hidden, kv_size),
        "attn_output": (q_size, shape.hidden),
        "ffn_gate": (shape.hidden, shape.intermediate),
        "ffn_up": (shape.hidden, shape.intermediate),
        "ffn_down": (shape.intermediate, shape.hidden),
    }
    vectors = {"attn_norm.weight": shape.hidden, "ffn_norm.weight": shape.hidden}
    if shape.architecture == "qwen2":
        vectors |= {"attn_q.bias": q_size, "attn_k.bias": kv_size, "attn_v.bias": kv_size}

    def place(name: str, size: tuple[int, ...], quant: QuantType) -> Place:
        rows = size[1] if len(size) > 1 else 1
        return Place(name, size, quant.value, rows * row_size_bytes(quant, size[0]))

    found = [place("token_embd.weight", (shape.hidden, shape.vocab_size), shape.type_of("token_embd", 0))]
    for i in range(shape.n_layers):
        found += [place(f"blk.{i}.{name}", (size,), QuantType.F32) for name, size in vectors.items()]
        found += [place(f"blk.{i}.{name}.weight", size, shape.type_of(name, i)) for name, size in matrices.items()]
    found.append(place("output_norm.weight", (shape.hidden,), QuantType.F32))
    if not shape.tied:
        found.append(place("output.weight", (shape.hidden, shape.vocab_size), shape.type_of("output", 0)))
    return found


def _part(name: str) -> str:
    return name.split(".")[-2]


def _vector(random: np.random.Generator, place: Place) -> bytes:
    drawn = _BIAS_STD * random.standard_normal(place.shape[0], np.float32)
    return (drawn + (0 if place.name.endswith(".bias") else 1)).astype(np.float32).tobytes()


def _metadata(shape: Shape) -> dict[str, object]:
    vocabulary = metadata_of(shape.vocabulary)
    arch = shape.architecture
    return {
        "general.architecture": arch,
        "general.name": f"Synthetic {shape.name}",
        f"{arch}.block_count": shape.n_layers,
        f"{arch}.context_length": shape.context_length,
        f"{arch}.embedding_length": shape.hidden,
        f"{arch}.feed_forward_length": shape.intermediate,
        f"{arch}.attention.head_count": shape.n_heads,
        f"{arch}.attention.head_count_kv": shape.n_kv_heads,
        f"{arch}.attention.key_length": shape.head_dim,
        f"{arch}.attention.value_length": shape.head_dim,
        f"{arch}.rope.freq_base": shape.rope_theta,
        f"{arch}.attention.layer_norm_rms_epsilon": shape.rms_eps,
        **vocabulary,
        TOKENS: vocabulary[TOKENS][: shape.vocab_size],  # type: ignore[index]
        TYPES: Typed(ValueType.I32, vocabulary[TYPES][: shape.vocab_size]),  # type: ignore[index]
    }


def main(arguments: Sequence[str]) -> int:
    """Write the file that `arguments` ask for."""
    parser = argparse.ArgumentParser(prog="python3 -m tests synthetic", description=__doc__)
    parser.add_argument("file", type=Path, help="the GGUF file to write")
    parser.add_argument("--shape", choices=SHAPES, default="r1-1.5b")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    path = write_synthetic_model(options.file, SHAPES[options.shape], seed=options.seed)
    print(f"{path}: {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    import sys

    sys.exit(main(sys.argv[1:]))
