"""The synthetic model: the real one's tensors and types, weights of the size that was meant, finite activations."""

import dataclasses
from collections import Counter

import numpy as np
import pytest

from clutch.formats.quants import QuantType
from tests.bench.shapes import SHAPES, q4_k_m
from tests.bench.synthetic import places, write_synthetic_model
from tests.support.model_reference import ReferenceModel
from tests.support.numpy_quants import dequantise
from tests.support.random_weights import _MAKERS, random_weights

SMALL = {
    "r1-1.5b": {"n_layers": 3, "hidden": 256, "intermediate": 512, "n_heads": 4, "head_dim": 64, "type_of": q4_k_m(3)},
    "smollm2-135m": {"n_layers": 2, "hidden": 192, "intermediate": 256, "n_heads": 3},
}


def test_the_mix_of_r1_is_that_of_its_q4_k_m_file():
    """Counts of Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf, which has the same shape."""
    tensors = places(SHAPES["r1-1.5b"])
    assert Counter(QuantType(place.type_id).name for place in tensors) == {"Q4_K": 169, "Q6_K": 29, "F32": 141}
    assert sum(place.size_bytes for place in tensors) == pytest.approx(1.11e9, rel=0.01)


@pytest.mark.parametrize("quant", _MAKERS)
def test_random_weights_have_the_deviation_that_was_asked_for(quant):
    data = random_weights(np.random.default_rng(1), quant, 1 << 17, 0.02)
    weights = dequantise(data.tobytes(), quant, (1 << 17,))
    assert weights.std() == pytest.approx(0.02, rel=0.02)
    assert abs(weights.mean()) < 2e-4


@pytest.mark.parametrize("name", SMALL)
def test_activations_stay_of_the_order_of_one_and_control_tokens_are_silent(name, tmp_path):
    shape = dataclasses.replace(SHAPES[name], **SMALL[name])
    model = ReferenceModel(write_synthetic_model(tmp_path / "synthetic.gguf", shape))
    logits = model.logits([1000, 2000, 3000, 4000, 5000])
    assert model.spec.vocab_size == shape.vocab_size
    assert np.isfinite(logits).all()
    assert 2 < logits.std() < 4
    kinds = np.array(model.header.metadata["tokenizer.ggml.token_type"])
    assert (logits[:, kinds != 1] == 0).all()
    ids, _ = model.greedy([1000, 2000], 24)
    assert len(set(ids)) > 12
