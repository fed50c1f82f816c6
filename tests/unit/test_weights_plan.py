"""The weight plan: every tensor goes up once, every row of every matrix is filled once."""

import numpy as np
import pytest

from clutch.errors import UnsupportedModelError
from clutch.formats.gguf import parse_header
from clutch.formats.quants import QuantType
from clutch.model.spec_reader import read_spec
from clutch.model.upload import _pieces
from clutch.model.weights import WeightPlan
from tests.support.fake_device import GUARANTEED
from tests.support.tiny_model import encode_tiny_model

QWEN2 = {"architecture": "qwen2", "tied": False}
MODELS = [{}, {"tied": False}, {"n_layers": 3, "n_kv_heads": 4}, {"matrix_type": QuantType.F32}, QWEN2]


def plan_of(header, limit=GUARANTEED.largest_buffer_bytes):
    return WeightPlan(read_spec(header), header, limit)


def header_of(**model):
    data = encode_tiny_model(**model).data
    return parse_header(data, len(data))


@pytest.mark.parametrize("model", MODELS)
def test_every_tensor_goes_up_exactly_once_in_the_order_of_the_file(model):
    header = header_of(**model)
    uploads = plan_of(header).uploads()
    assert sorted(part.tensor.name for part, _ in uploads) == sorted(header.tensors)
    offsets = [part.tensor.offset for part, _ in uploads]
    assert offsets == sorted(offsets)


@pytest.mark.parametrize("limit", [1 << 20, 2500])
@pytest.mark.parametrize("model", MODELS)
def test_every_row_is_filled_exactly_once_and_lies_in_one_slab(model, limit):
    for plan in plan_of(header_of(**model), limit).matrices.values():
        filled, held = np.zeros(plan.rows, int), np.zeros(plan.rows, int)
        for part in plan.parts:
            assert part.columns == plan.columns
            filled[part.row_offset + part.row_stride * np.arange(part.rows)] += 1
        has_no_bias = plan.name.endswith("attention_vectors") and model.get("architecture") != "qwen2"
        assert (filled[:64] == 1).all() if has_no_bias else (filled == 1).all(), plan.name
        for slab in plan.slabs:
            held[slab.first_row : slab.first_row + slab.rows] += 1
            assert slab.columns == plan.columns
        assert (held == 1).all()


def test_where_the_rows_of_a_layer_go():
    matrices = plan_of(header_of()).matrices
    places = {part.tensor.name: (part.row_stride, part.row_offset) for m in matrices.values() for part in m.parts}
    assert [places[f"blk.0.attn_{name}.weight"] for name in "qkv"] == [(1, 0), (1, 64), (1, 96)]
    assert [places[f"blk.1.ffn_{name}.weight"] for name in ("gate", "up")] == [(2, 0), (2, 1)]
    assert matrices["blk.0.qkv"].rows == 128
    assert matrices["blk.0.gate_up"].rows == 192


def test_the_biases_lie_behind_the_gain_in_the_order_of_the_rows():
    vectors = plan_of(header_of(**QWEN2)).matrices["blk.0.attention_vectors"]
    places = {part.tensor.name: part.row_offset for part in vectors.parts}
    assert places == {
        "blk.0.attn_norm.weight": 0,
        "blk.0.attn_q.bias": 64,
        "blk.0.attn_k.bias": 64 + 64,
        "blk.0.attn_v.bias": 64 + 96,
    }
    assert (vectors.rows, vectors.columns) == (64 + 128, 1)


def test_where_rope_pairs_halves_the_rows_of_q_and_k_change_places():
    for model, half_head in ((QWEN2, 8), ({}, 0)):
        parts = [part for part, _ in plan_of(header_of(**model)).uploads()]
        moved = {part.tensor.name: part.half_head for part in parts}
        halves = [name for name in moved if "attn_q." in name or "attn_k." in name]
        assert {moved[name] for name in halves} == {half_head}
        assert not any(moved[name] for name in moved if name not in halves)


def slabs_of(plan):
    return [(slab.first_row, slab.rows, slab.type.name) for slab in plan.slabs]


def test_a_matrix_above_the_limit_is_cut_into_even_slabs_of_whole_pairs():
    # Q8_0: 64 bytes of quants a row; Q4_1: 32.
    matrices = plan_of(header_of(), 100 * 64).matrices
    assert slabs_of(matrices["token_embd.weight"]) == [
        (0, 80, "Q8_0"),
        (80, 80, "Q8_0"),
        (160, 80, "Q8_0"),
        (240, 73, "Q8_0"),
    ]
    assert slabs_of(matrices["blk.0.gate_up"]) == [(0, 192, "Q4_1")]
    labels = [slab.label for slab in matrices["token_embd.weight"].slabs]
    assert labels[:2] == ["token_embd.weight from row 0", "token_embd.weight from row 80"]
    matrices = plan_of(header_of(), 50 * 32).matrices
    assert slabs_of(matrices["blk.0.gate_up"]) == [
        (0, 48, "Q4_1"),
        (48, 48, "Q4_1"),
        (96, 48, "Q4_1"),
        (144, 48, "Q4_1"),
    ]
    # A head of 16 rows stays whole.
    assert slabs_of(matrices["blk.0.qkv"]) == [(0, 48, "Q4_1"), (48, 48, "Q4_1"), (96, 32, "Q4_1")]


def test_a_slab_is_at_least_a_pair_of_rows_or_a_head_even_when_that_is_too_large():
    plan = plan_of(header_of(), 10)
    assert {slab.rows for slab in plan.matrices["blk.0.ffn_down"].slabs} == {2}
    assert plan.largest_buffer == ("blk.0.qkv from row 0", 16 * 32)


def test_a_matrix_of_several_quantisations_has_a_slab_for_each_run():
    matrices = plan_of(header_of(part_types={"attn_v": QuantType.Q8_0, "ffn_down": QuantType.Q8_0})).matrices
    assert slabs_of(matrices["blk.0.qkv"]) == [(0, 96, "Q4_1"), (96, 32, "Q8_0")]
    assert slabs_of(matrices["blk.0.ffn_down"]) == [(0, 64, "Q8_0")]
    matrices = plan_of(header_of(part_types={"attn_k": QuantType.Q8_0})).matrices
    assert slabs_of(matrices["blk.1.qkv"]) == [(0, 64, "Q4_1"), (64, 32, "Q8_0"), (96, 32, "Q4_1")]


@pytest.mark.parametrize("limit", [1 << 20, 2500])
@pytest.mark.parametrize("most_rows", [1, 1.9, 7, 1000])
def test_pieces_cover_a_tensor_once(most_rows, limit):
    for part, plan in plan_of(header_of(**QWEN2), limit).uploads():
        most_bytes = int(most_rows * part.row_bytes)
        pieces = list(_pieces(part, plan, most_bytes))
        assert [row for _, rows in pieces for row in rows] == list(range(part.rows))
        for i, rows in pieces:
            assert len(rows) * part.row_bytes <= most_bytes
            slab = plan.slabs[i]
            placed = np.array(rows) * part.row_stride + part.row_offset
            assert slab.first_row <= placed.min() <= placed.max() < slab.first_row + slab.rows
            assert slab.type is part.tensor.type


@pytest.mark.parametrize("name", ["ffn_gate", "ffn_up"])
def test_gate_and_up_of_different_quantisation_are_refused(name):
    with pytest.raises(UnsupportedModelError) as refused:
        plan_of(header_of(part_types={name: QuantType.Q8_0}))
    assert f"blk.0.{name}.weight Q8_0" in refused.value.message
    assert refused.value.data["tensor"] == "blk.0.gate_up"
