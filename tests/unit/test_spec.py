"""ModelSpec: what it reads, what it refuses and with which numbers."""

import dataclasses
import json
import math

import pytest

from clutch.errors import ModelFormatError, UnsupportedModelError
from clutch.formats.gguf import TensorInfo, parse_header
from clutch.formats.quants import QuantType
from clutch.model.spec_reader import read_spec
from tests.support.tiny_model import encode_tiny_model

ABSENT = object()


def header_of(**options):
    data = encode_tiny_model(**options).data
    return parse_header(data, len(data))


TINY = header_of()


def with_metadata(values, header=TINY):
    """Return the header with metadata replaced, added or taken away."""
    metadata = {key: value for key, value in {**header.metadata, **values}.items() if value is not ABSENT}
    return dataclasses.replace(header, metadata=metadata)


def with_tensor(name, **changes):
    """Return the tiny header with one tensor changed, or added as a copy of a norm."""
    base = TINY.tensors.get(name, TensorInfo(name, (64,), QuantType.F32, 0, 256))
    tensors = {**TINY.tensors, name: dataclasses.replace(base, **changes)}
    return dataclasses.replace(TINY, tensors=tensors)


def without_tensor(name):
    tensors = {key: tensor for key, tensor in TINY.tensors.items() if key != name}
    return dataclasses.replace(TINY, tensors=tensors)


def test_reads_the_tiny_model():
    spec = read_spec(TINY)
    assert dataclasses.asdict(spec) == {
        "architecture": "llama",
        "name": "Tiny random llama",
        "n_layers": 2,
        "hidden_size": 64,
        "intermediate_size": 96,
        "n_heads": 4,
        "n_kv_heads": 2,
        "head_dim": 16,
        "rope_theta": 10000.0,
        "rope_dim": 16,
        "rms_eps": pytest.approx(1e-5),
        "context_length": 512,
        "vocab_size": 313,
        "tied_output": True,
        "has_qkv_bias": False,
        "pairs_halves": False,
        "tensor_types": {name: tensor.type for name, tensor in TINY.tensors.items()},
    }


def test_absent_keys_have_llama_cpps_defaults():
    names = ["attention.key_length", "attention.value_length", "attention.head_count_kv", "rope.freq_base"]
    names += ["rope.dimension_count", "vocab_size"]
    header = with_metadata(
        {f"llama.{name}": ABSENT for name in names} | {"general.name": ABSENT}, header_of(n_kv_heads=4)
    )
    spec = read_spec(header)
    assert (spec.name, spec.head_dim, spec.n_kv_heads, spec.rope_dim) == ("llama", 16, 4, 16)
    assert (spec.rope_theta, spec.vocab_size) == (10000.0, 313)


def test_reads_a_qwen2_whose_file_leaves_out_what_follows():
    spec = read_spec(header_of(architecture="qwen2", tied=False))
    assert (spec.architecture, spec.tied_output, spec.has_qkv_bias, spec.pairs_halves) == ("qwen2", False, True, True)
    assert (spec.head_dim, spec.rope_dim, spec.vocab_size) == (16, 16, 313)
    assert spec.tensor_types["blk.1.attn_k.bias"] is QuantType.F32


@pytest.mark.parametrize("name", ["blk.0.attn_q.bias", "blk.1.attn_v.bias"])
def test_a_qwen2_has_its_biases(name):
    header = header_of(architecture="qwen2")
    tensors = {key: tensor for key, tensor in header.tensors.items() if key != name}
    with pytest.raises(ModelFormatError) as caught:
        read_spec(dataclasses.replace(header, tensors=tensors))
    assert caught.value.data["field"] == name


@pytest.mark.parametrize(
    "options",
    [
        {"tied": False},
        {"head_dim": 32, "n_heads": 3, "n_kv_heads": 1},
        {"matrix_type": QuantType.F32, "embedding_type": QuantType.Q4_1},
        {"n_layers": 1, "hidden": 96, "head_dim": 24},
    ],
)
def test_reads_other_shapes(options):
    spec = read_spec(header_of(**options))
    assert spec.tied_output is options.get("tied", True)
    assert spec.head_dim == options.get("head_dim", 16)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("general.architecture", ABSENT),
        ("general.architecture", 7),
        ("general.name", 7),
        *[(f"llama.{key}", ABSENT) for key in ["block_count", "embedding_length", "feed_forward_length"]],
        *[(f"llama.{key}", ABSENT) for key in ["context_length", "attention.head_count"]],
        ("llama.attention.layer_norm_rms_epsilon", ABSENT),
        *[("llama.block_count", value) for value in [0, -1, 1 << 31, True, 2.0, "2"]],
        ("llama.embedding_length", 0),
        ("llama.feed_forward_length", 1 << 32),
        ("llama.context_length", 0),
        ("llama.attention.head_count", 0),
        ("llama.attention.head_count_kv", 0),
        ("llama.attention.head_count_kv", 3),
        ("llama.attention.head_count_kv", 8),
        ("llama.attention.key_length", 0),
        *[("llama.rope.freq_base", value) for value in [0.0, -1.0, math.nan, math.inf, 10000]],
        *[("llama.attention.layer_norm_rms_epsilon", v) for v in [0.0, -1e-5, 1e-2, math.nan, math.inf]],
        ("llama.rope.dimension_count", 0),
        ("llama.rope.dimension_count", 17),
        ("llama.vocab_size", 312),
    ],
)
def test_a_wrong_number_is_named(key, value):
    with pytest.raises(ModelFormatError) as caught:
        read_spec(with_metadata({key: value}))
    assert caught.value.data["field"] == key
    assert key in caught.value.message
    json.dumps(caught.value.to_wire(), allow_nan=False)


def test_heads_divide_the_hidden_size():
    values = {"llama.attention.head_count": 5, "llama.attention.key_length": ABSENT}
    with pytest.raises(ModelFormatError, match="a divisor of 64, found 5"):
        read_spec(with_metadata(values))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"general.architecture": "mamba"}, "architecture is mamba; Clutch runs one of: llama, qwen2"),
        ({"llama.rope.scaling.type": "yarn"}, "RoPE scaling is yarn"),
        ({"llama.rope.scaling.type": "linear"}, "RoPE scaling is linear"),
        ({"llama.rope.scaling.factor": 4.0}, r"RoPE scaling is linear, 4\.0"),
        ({"llama.rope.scale_linear": 2.0}, r"RoPE scaling is linear, 2\.0"),
        ({"llama.expert_count": 8}, "number of experts is 8"),
        ({"split.count": 3}, "number of files is 3"),
        ({"llama.attention.value_length": 32}, "value head size is 32"),
        ({"llama.rope.dimension_count": 8}, "RoPE dimensions is 8; Clutch runs the head size, 16"),
        ({"llama.attention.head_count": [4, 4]}, "head_count is a list of 2"),
    ],
)
def test_what_we_do_not_run_is_named(values, words):
    with pytest.raises(UnsupportedModelError, match=words):
        read_spec(with_metadata(values))


def test_scaling_that_scales_nothing_is_allowed():
    for values in ({"llama.rope.scaling.type": "none"}, {"llama.rope.scaling.factor": 1.0}):
        read_spec(with_metadata(values))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hidden": 48, "matrix_type": QuantType.F32, "embedding_type": QuantType.F32}, "hidden size is 48"),
        ({"intermediate": 80, "matrix_type": QuantType.F32}, "intermediate size is 80; .* a multiple of 32"),
        ({"head_dim": 12, "n_heads": 8}, "head size is 12; Clutch runs a multiple of 4 from 16 to 256"),
        ({"head_dim": 288, "n_heads": 1, "n_kv_heads": 1}, "head size is 288"),
        ({"head_dim": 18, "matrix_type": QuantType.F32}, "head size is 18"),
        ({"head_dim": 20, "n_heads": 2, "matrix_type": QuantType.F32}, "width of all heads is 40"),
    ],
)
def test_what_the_kernels_cannot_take_is_named(options, words):
    with pytest.raises(UnsupportedModelError, match=words):
        read_spec(header_of(**options))


@pytest.mark.parametrize("name", [*TINY.tensors])
def test_every_tensor_is_needed(name):
    with pytest.raises(ModelFormatError) as caught:
        read_spec(without_tensor(name))
    assert caught.value.data["field"] == name


@pytest.mark.parametrize("name", [*TINY.tensors])
def test_every_shape_is_checked(name):
    shape = TINY.tensors[name].shape
    for wrong in [(shape[0] * 2, *shape[1:]), (*shape, 1), (*shape[:-1], shape[-1] + 32)]:
        with pytest.raises(ModelFormatError) as caught:
            read_spec(with_tensor(name, shape=wrong))
        assert caught.value.data["field"] in {name, "llama.vocab_size"}


@pytest.mark.parametrize(
    ("name", "quant", "supported"),
    [
        ("blk.1.ffn_down.weight", QuantType.Q5_K, "F32, Q4_1, Q4_K, Q5_0, Q6_K, Q8_0"),
        ("token_embd.weight", QuantType.F16, "F32, Q4_1, Q4_K, Q5_0, Q6_K, Q8_0"),
        ("blk.0.attn_norm.weight", QuantType.Q8_0, "F32"),
    ],
)
def test_an_unsupported_type_is_named_with_its_tensor(name, quant, supported):
    words = f"type of {name} is {quant.name}; Clutch runs one of: {supported}$"
    with pytest.raises(UnsupportedModelError, match=words):
        read_spec(with_tensor(name, type=quant))


@pytest.mark.parametrize("name", ["blk.0.attn_q.bias", "rope_freqs.weight", "blk.2.attn_norm.weight", "extra"])
def test_a_tensor_we_would_ignore_is_refused(name):
    with pytest.raises(UnsupportedModelError, match=name):
        read_spec(with_tensor(name))
