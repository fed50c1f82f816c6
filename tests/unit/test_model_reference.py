"""The NumPy reference model against the paper's formulas, written out a number at a time."""

import cmath
import itertools
import math

import numpy as np
import pytest

from clutch.formats.gguf import parse_header
from clutch.formats.quants import QuantType, dequantise_block
from tests.support.model_reference import ReferenceModel
from tests.support.tiny_model import IM_END, encode_tiny_model, write_tiny_model

PROMPT = [1, 60, 75, 300, 2, 117]
N_LAYERS, N_HEADS, N_KV_HEADS, HEAD_DIM = 2, 4, 2, 16
THETA, EPS = 10000.0, 1e-5

VARIANTS = {
    "tied": {},
    "untied": {"tied": False},
    "q8_0 matrices": {"matrix_type": QuantType.Q8_0, "embedding_type": QuantType.Q4_1},
    "qwen2": {"architecture": "qwen2", "tied": False},
    "f32": {"matrix_type": QuantType.F32, "embedding_type": QuantType.F32},
}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return ReferenceModel(write_tiny_model(tmp_path_factory.mktemp("model") / "tiny.gguf"))


class SlowModel:
    """Plain lists and loops in float64, no cache, one head and one position at a time."""

    def __init__(self, data):
        self.weights = {}
        header = parse_header(data, len(data))
        self.rope = rope_of_halves if header.metadata["general.architecture"] == "qwen2" else rope
        for info in header.tensors.values():
            size = info.type.block_bytes
            places = range(info.offset, info.offset + info.size_bytes, size)
            blocks = (dequantise_block(info.type, data[place : place + size]) for place in places)
            flat = list(itertools.chain.from_iterable(blocks))
            row = info.shape[0]
            self.weights[info.name] = [flat[start : start + row] for start in range(0, len(flat), row)]

    def last_logits(self, token_ids):
        stream = [self.weights["token_embd.weight"][token] for token in token_ids]
        for layer in range(N_LAYERS):
            stream = self.after_layer(f"blk.{layer}", stream)
        output = self.weights.get("output.weight", self.weights["token_embd.weight"])
        return [dot(row, self.norm(stream[-1], "output_norm")) for row in output]

    def after_layer(self, block, stream):
        normed = [self.norm(x, f"{block}.attn_norm") for x in stream]
        queries, keys = (
            [self.rope(self.times(x, f"{block}.attn_{part}"), position) for position, x in enumerate(normed)]
            for part in "qk"
        )
        values = [self.times(x, f"{block}.attn_v") for x in normed]
        after = []
        for position, x in enumerate(stream):
            mixed = []
            for head in range(N_HEADS):
                query = queries[position][head * HEAD_DIM :][:HEAD_DIM]
                start = head * N_KV_HEADS // N_HEADS * HEAD_DIM
                seen = range(position + 1)
                scores = [dot(query, keys[past][start:][:HEAD_DIM]) / math.sqrt(HEAD_DIM) for past in seen]
                total = sum(map(math.exp, scores))
                mixed += [
                    sum(math.exp(scores[past]) / total * values[past][start + i] for past in seen)
                    for i in range(HEAD_DIM)
                ]
            middle = add(x, self.times(mixed, f"{block}.attn_output"))
            y = self.norm(middle, f"{block}.ffn_norm")
            gate, up = self.times(y, f"{block}.ffn_gate"), self.times(y, f"{block}.ffn_up")
            hidden = [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up, strict=True)]
            after.append(add(middle, self.times(hidden, f"{block}.ffn_down")))
        return after

    def norm(self, x, name):
        rms = math.sqrt(sum(value * value for value in x) / len(x) + EPS)
        # An F32 tensor has blocks of one; a norm is one row of them.
        (weights,) = self.weights[f"{name}.weight"]
        return [value / rms * weight for value, weight in zip(x, weights, strict=True)]

    def times(self, x, name):
        product = [dot(row, x) for row in self.weights[f"{name}.weight"]]
        (bias,) = self.weights.get(f"{name}.bias", [[0.0] * len(product)])
        return add(product, bias)


def rope(x, position):
    turned = []
    for start in range(0, len(x), HEAD_DIM):
        for i in range(0, HEAD_DIM, 2):
            pair = complex(x[start + i], x[start + i + 1])
            pair *= cmath.exp(1j * position * THETA ** (-i / HEAD_DIM))
            turned += [pair.real, pair.imag]
    return turned


def rope_of_halves(x, position):
    """Turn i with i + HEAD_DIM / 2, by making them neighbours."""
    half = HEAD_DIM // 2
    order = [start + i + side * half for start in range(0, len(x), HEAD_DIM) for i in range(half) for side in (0, 1)]
    turned = [0.0] * len(x)
    for place, value in zip(order, rope([x[place] for place in order], position), strict=True):
        turned[place] = value
    return turned


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def add(a, b):
    return [x + y for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
def test_logits_are_the_formulas(options, tmp_path):
    data = encode_tiny_model(**options).data
    (tmp_path / "model.gguf").write_bytes(data)
    fast = ReferenceModel(tmp_path / "model.gguf").logits(PROMPT)
    assert fast.dtype == np.float32
    np.testing.assert_allclose(fast[-1], SlowModel(data).last_logits(PROMPT), rtol=0, atol=2e-4)


def test_a_token_sees_only_those_before_it(tiny):
    whole = tiny.logits(PROMPT)
    for length in range(1, len(PROMPT)):
        np.testing.assert_allclose(tiny.logits(PROMPT[:length]), whole[:length], rtol=0, atol=1e-4)


def test_greedy_with_a_cache_is_greedy_without(tiny):
    ids, margins = tiny.greedy(PROMPT, 24)
    logits = tiny.logits(PROMPT + ids[:-1])[len(PROMPT) - 1 :]
    assert ids == logits.argmax(axis=1).tolist()
    second, first = np.sort(logits, axis=1)[:, -2:].T
    np.testing.assert_allclose(margins, first - second, rtol=0, atol=1e-4)


def test_the_tiny_model_is_fit_for_its_purpose(tiny):
    """Spread logits, answers that wander, no early end."""
    ids, margins = tiny.greedy(PROMPT, 128)
    assert 2.5 < tiny.logits(PROMPT).std() < 3.5
    assert len(set(ids)) > 40
    assert np.median(margins) > 0.3
    assert IM_END not in ids


def test_the_tiny_model_is_the_same_bytes_for_a_seed():
    assert encode_tiny_model(seed=3).data == encode_tiny_model(seed=3).data
    assert encode_tiny_model(seed=3).data != encode_tiny_model(seed=4).data
