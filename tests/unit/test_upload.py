"""The upload, on a device of NumPy: what lies in the slabs are the rows of the file, each at its place."""

import asyncio

import numpy as np
import pytest

from clutch.formats.gguf import parse_header
from clutch.formats.quants import QuantType
from clutch.gpu.ledger import Ledger
from clutch.model.spec_reader import read_spec
from clutch.model.upload import Upload
from clutch.model.weights import WeightPlan
from tests.support.fake_device import FakeDevice
from tests.support.fake_platform import FakeSource
from tests.support.format_reference import dequantised
from tests.support.numpy_quants import dequantise
from tests.support.tiny_model import encode_tiny_model

MODELS = {
    "llama": {},
    "qwen2": {"architecture": "qwen2", "tied": False},
    "mixed": {"part_types": {"attn_v": QuantType.Q8_0, "ffn_down": QuantType.F32}},
    "Q4_K_M": {
        "architecture": "qwen2",
        "n_layers": 1,
        "hidden": 256,
        "intermediate": 512,
        "n_heads": 4,
        "head_dim": 64,
        "matrix_type": QuantType.Q4_K,
        "embedding_type": QuantType.Q6_K,
        "part_types": {"attn_v": QuantType.Q6_K, "ffn_down": QuantType.Q6_K, "attn_output": QuantType.Q5_0},
        "tied": False,
    },
}


def uploaded(data, limit, staging_bytes):
    """Return the plan, and the weights of every matrix as they lie on the device."""

    async def story():
        header, device, ledger = parse_header(data, len(data)), FakeDevice(), Ledger()
        plan = WeightPlan(read_spec(header), header, limit)
        await plan.allocate(ledger.scope(device))
        upload = Upload(plan, device, staging_bytes=staging_bytes)
        await device.compile(upload.kernels, lambda *_: None)
        await upload.run(FakeSource(data), ledger, lambda *_: None)
        return plan

    plan = asyncio.run(story())
    return plan, {name: weights_of(matrix) for name, matrix in plan.buffers.items()}


def weights_of(matrix):
    return np.concatenate(
        [
            dequantised(
                {"quants": slab.quants.data, "scales": slab.scales.data}, slab.format, slab.rows, matrix.columns
            )
            for slab in matrix.slabs
        ]
    )


def halves_to_neighbours(rows, head_dim):
    """Return rows (n, columns) with i and i + head_dim / 2 of each head next to each other."""
    return rows.reshape(-1, 2, head_dim // 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


@pytest.mark.parametrize(("limit", "staging_bytes"), [(1 << 27, 1 << 20), (9000, 4000)])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_every_row_arrives_where_it_belongs(model, limit, staging_bytes):
    data = encode_tiny_model(**model).data
    plan, found = uploaded(data, limit, staging_bytes)
    header = parse_header(data, len(data))
    head_dim = read_spec(header).head_dim
    file = {
        name: dequantise(data[t.offset : t.offset + t.size_bytes], t.type, t.shape[::-1]).reshape(t.shape[-1], -1)
        for name, t in header.tensors.items()
    }

    def qkv(layer, kind):
        parts = [file.get(f"blk.{layer}.attn_{part}.{kind}") for part in "qkv"]
        if model.get("architecture") == "qwen2":
            return np.concatenate([*(halves_to_neighbours(part, head_dim) for part in parts[:2]), parts[2]])
        return np.concatenate(parts) if parts[0] is not None else np.zeros((found["blk.0.qkv"].shape[0], 1))

    expected = {"token_embd.weight": file["token_embd.weight"], "output_norm": file["output_norm.weight"]}
    if "output.weight" in file:
        expected["output.weight"] = file["output.weight"]
    for i in range(model.get("n_layers", 2)):
        gain, gate, up = (file[f"blk.{i}.{name}.weight"] for name in ("attn_norm", "ffn_gate", "ffn_up"))
        expected[f"blk.{i}.attention_vectors"] = np.concatenate([gain, qkv(i, "bias")])
        expected[f"blk.{i}.qkv"] = qkv(i, "weight")
        expected[f"blk.{i}.gate_up"] = np.stack([gate, up], axis=1).reshape(-1, gate.shape[1])
        for name in ("attn_output", "ffn_norm", "ffn_down"):
            expected[f"blk.{i}.{name}"] = file[f"blk.{i}.{name}.weight"]
    assert found.keys() == expected.keys()
    for name, weights in expected.items():
        assert (found[name] == weights).all(), name
    assert (max(len(matrix.slabs) for matrix in plan.matrices.values()) > 2) == (limit == 9000)
