"""The weight plan: every tensor goes up once, every row of every matrix is filled once."""

import dataclasses

import numpy as np
import pytest

from clutch.errors import UnsupportedModelError
from clutch.formats.gguf import parse_header
from clutch.formats.quants import QuantType
from clutch.model.spec_reader import read_spec
from clutch.model.upload import _pieces
from clutch.model.weights import WeightPlan
from tests.support.tiny_model import encode_tiny_model

MODELS = [{}, {"tied": False}, {"n_layers": 3, "n_kv_heads": 4}, {"matrix_type": QuantType.F32}]


def plan_of(header):
    return WeightPlan(read_spec(header), header)


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


@pytest.mark.parametrize("model", MODELS)
def test_every_row_is_filled_exactly_once(model):
    for plan in plan_of(header_of(**model)).matrices.values():
        filled = np.zeros(plan.rows, int)
        for part in plan.parts:
            n_rows = part.tensor.shape[1] if len(part.tensor.shape) > 1 else 1
            assert part.tensor.shape[0] == plan.columns
            filled[part.row_offset + part.row_stride * np.arange(n_rows)] += 1
        assert (filled == 1).all(), plan.name


def test_where_the_rows_of_a_layer_go():
    matrices = plan_of(header_of()).matrices
    places = {part.tensor.name: (part.row_stride, part.row_offset) for m in matrices.values() for part in m.parts}
    assert [places[f"blk.0.attn_{name}.weight"] for name in "qkv"] == [(1, 0), (1, 64), (1, 96)]
    assert [places[f"blk.1.ffn_{name}.weight"] for name in ("gate", "up")] == [(2, 0), (2, 1)]
    assert matrices["blk.0.qkv"].rows == 128
    assert matrices["blk.0.gate_up"].rows == 192


@pytest.mark.parametrize("most_rows", [1, 1.9, 7, 1000])
def test_pieces_cover_a_tensor_once(most_rows):
    for part, plan in plan_of(header_of()).uploads():
        most_bytes = int(most_rows * plan.row_bytes)
        pieces = _pieces(part, plan, most_bytes)
        assert sum(size for _, _, size in pieces) == part.tensor.size_bytes
        assert [first for first, _, _ in pieces] == [0, *np.cumsum([rows for _, rows, _ in pieces])[:-1].tolist()]
        assert all(size == rows * plan.row_bytes <= most_bytes for _, rows, size in pieces)


@pytest.mark.parametrize("name", ["attn_q", "attn_v", "ffn_gate", "ffn_up"])
def test_matrices_of_mixed_quantisation_are_refused(name):
    header = header_of()
    mixed = dataclasses.replace(header.tensors[f"blk.0.{name}.weight"], type=QuantType.Q8_0)
    header = dataclasses.replace(header, tensors={**header.tensors, mixed.name: mixed})
    with pytest.raises(UnsupportedModelError) as refused:
        plan_of(header)
    assert f"{mixed.name} Q8_0" in refused.value.message
    assert refused.value.data["tensor"] == ("blk.0.qkv" if "attn" in name else "blk.0.gate_up")


def test_matrices_that_stand_alone_may_have_a_type_of_their_own():
    header = header_of()
    down = dataclasses.replace(header.tensors["blk.0.ffn_down.weight"], type=QuantType.Q8_0)
    header = dataclasses.replace(header, tensors={**header.tensors, down.name: down})
    assert plan_of(header).matrices["blk.0.ffn_down"].type is QuantType.Q8_0
