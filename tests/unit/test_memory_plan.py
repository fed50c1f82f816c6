"""The memory plan: what it counts is what is made, and what it refuses says what would fit."""

import asyncio
import re

import pytest

from clutch.config import EngineConfig
from clutch.errors import ContextLengthError, OutOfMemory, RequestError, UnsupportedModelError
from clutch.formats.gguf import parse_header
from clutch.formats.quants import QuantType
from clutch.gpu.ledger import Ledger
from clutch.gpu.limits import Limits
from clutch.gpu.step import MAX_SEQUENCES, RESULT_BYTES
from clutch.kv.layout import F16, Q8, KVLayout
from clutch.kv.pool import PAGE_POSITIONS
from clutch.model.memory import advise, plan_memory
from clutch.model.spec_reader import read_spec
from clutch.model.state import allocate_state
from clutch.model.weights import WeightPlan
from tests.support.fake_device import GUARANTEED, FakeDevice
from tests.support.tiny_model import encode_tiny_model

MODELS = [{}, {"tied": False}, {"n_layers": 1, "n_kv_heads": 1, "context_length": 100}, {"n_layers": 3, "hidden": 96}]
CONFIGS = [
    {},
    {"context_length": 16, "prefill_tokens": 8, "attention_splits": 1, "steps_in_flight": 3},
    {"kv_format": Q8, "context_length": 64, "pool_positions": 80},
]


def planned(config=None, limits=GUARANTEED, **model):
    data = encode_tiny_model(**model).data
    header = parse_header(data, len(data))
    spec = read_spec(header)
    weights = WeightPlan(spec, header, limits.largest_buffer_bytes)
    return plan_memory(spec, weights, config or EngineConfig(), limits), weights


def rounded(size_bytes):
    """Return what the ledger makes of a size."""
    return max(16, -(-size_bytes // 16) * 16)


class WatchedDevice(FakeDevice):
    def __init__(self):
        super().__init__()
        self.sizes = {}

    async def allocate(self, label, size_bytes, usage):
        assert label not in self.sizes
        self.sizes[label] = size_bytes
        return await super().allocate(label, size_bytes, usage)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("config", CONFIGS)
def test_every_buffer_is_as_large_as_planned(model, config):
    config = EngineConfig(**config)
    plan, weights = planned(config, **model)
    ledger, device = Ledger(), WatchedDevice()

    async def made():
        scope = ledger.scope(device)
        await weights.allocate(scope)
        await allocate_state(plan, scope)

    asyncio.run(made())
    assert plan.weights_bytes == weights.size_bytes
    expected = {name: rounded(size) for name, size in plan.scratch.items() if name != "readbacks"}
    expected |= {f"readback {i}": MAX_SEQUENCES * RESULT_BYTES for i in range(config.steps_in_flight + 1)}
    expected |= {f"KV pages of layer {i}": plan.kv_layer_bytes for i in range(plan.n_layers)}
    expected |= {f"{slab.label} quants": rounded(slab.quants_bytes) for slab in weights.slabs}
    expected |= {f"{slab.label} scales": rounded(slab.scales_bytes) for slab in weights.slabs}
    assert device.sizes == expected
    assert ledger.bytes == sum(expected.values())
    assert 0 <= ledger.bytes - plan.total_bytes < 16 * ledger.buffers


def test_the_wire_adds_up():
    plan, _ = planned()
    wire = plan.to_wire()
    assert wire["total"] == wire["weights"] + wire["kv"] + wire["scratch"] == plan.total_bytes
    assert wire["peak"] == wire["total"] + plan.upload_bytes


def test_the_staging_buffer_holds_a_row_however_small_the_pieces():
    # A row of 32,768 f32 is larger than the smallest allowed piece.
    shape = {"n_layers": 1, "intermediate": 1 << 15, "matrix_type": QuantType.F32}
    plan, _ = planned(EngineConfig(upload_bytes=1 << 16), **shape)
    assert plan.upload_bytes == (1 << 15) * 4 + 16


@pytest.mark.parametrize(("asked", "of_model", "expected"), [(64, 512, 64), (2048, 512, 512), (2048, 100, 96)])
def test_the_context_is_what_is_asked_for_and_what_the_model_has(asked, of_model, expected):
    plan, _ = planned(EngineConfig(context_length=asked), context_length=of_model)
    assert plan.context_length == expected


def test_the_pool_is_for_so_many_contexts_or_as_asked_for():
    assert planned(EngineConfig(context_length=64, pool_contexts=3))[0].pool_positions == 3 * 64
    assert planned(EngineConfig(context_length=64, pool_positions=80))[0].pool_positions == 80
    with pytest.raises(RequestError, match="one session alone may have 64"):
        planned(EngineConfig(context_length=64, pool_positions=48))


def test_a_context_that_the_model_does_not_have_is_refused_when_it_was_asked_for():
    assert planned(EngineConfig(asked_context_length=128), context_length=512)[0].context_length == 128
    with pytest.raises(ContextLengthError) as refused:
        planned(EngineConfig(asked_context_length=1024), context_length=512)
    assert refused.value.data == {"context_length": 1024, "model_context_length": 512}


def test_keys_and_values_of_8_bits_take_little_more_than_half():
    halves, bytes_ = (planned(EngineConfig(kv_format=kv), head_dim=64)[0].kv_bytes for kv in (F16, Q8))
    assert bytes_ * 2 * 64 == halves * (64 + 4)


@pytest.mark.parametrize("kv", [F16, Q8])
def test_heads_that_cannot_be_read_eight_values_at_a_time_are_refused(kv):
    with pytest.raises(UnsupportedModelError, match="this model's have 20"):
        KVLayout(kv, 2, 20)
    assert KVLayout(F16, 2, 24).position_bytes == 2 * 2 * 2 * 24


def test_a_model_without_room_for_a_page_is_refused():
    with pytest.raises(UnsupportedModelError, match="context"):
        planned(context_length=PAGE_POSITIONS - 1)
    assert planned(context_length=PAGE_POSITIONS)[0].context_length == PAGE_POSITIONS


@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
def test_a_context_that_is_too_long_is_answered_with_one_that_fits(n_kv_heads):
    config = EngineConfig(context_length=1 << 16, prefill_tokens=8, attention_splits=1)
    model = {"n_kv_heads": n_kv_heads, "context_length": 1 << 16}
    limits = Limits(1 << 20, 1 << 20)
    with pytest.raises(OutOfMemory) as refused:
        planned(config, limits, **model)
    error = refused.value
    assert error.data["limit_bytes"] == 1 << 20 < error.data["asked_bytes"]
    assert str(error.data["buffer"]) in error.message
    fits = int(re.search(r"context length of (\d+) or less", error.hint)[1])
    assert 0 < fits < 1 << 16

    def config_of(context_length):
        return EngineConfig(context_length=context_length, prefill_tokens=8, attention_splits=1)

    plan, _ = planned(config_of(fits), limits, **model)
    assert plan.context_length == fits
    with pytest.raises(OutOfMemory):
        planned(config_of(fits + PAGE_POSITIONS), limits, **model)


@pytest.mark.parametrize("kv_format", [F16, Q8])
def test_a_pool_that_was_asked_for_and_is_too_large_is_answered_with_one_that_fits(kv_format):
    def config_of(pool_positions):
        return EngineConfig(context_length=64, pool_positions=pool_positions, kv_format=kv_format)

    limits = Limits(1 << 20, 1 << 20)
    with pytest.raises(OutOfMemory) as refused:
        planned(config_of(1 << 16), limits)
    fits = int(re.search(r"a pool of (\d+) or less", refused.value.hint)[1])
    assert planned(config_of(fits), limits)[0].pool_positions == fits
    with pytest.raises(OutOfMemory):
        planned(config_of(fits + PAGE_POSITIONS), limits)


@pytest.mark.parametrize(
    ("asked", "name"), [({}, "context_length_that_fits"), ({"pool_positions": 64}, "pool_positions_that_fits")]
)
def test_the_advice_is_the_most_that_leaves_room_for_the_rest(asked, name):
    config = EngineConfig(context_length=64, pool_contexts=1, **asked)
    plan, _ = planned(config)
    refused = OutOfMemory("no", buffer="KV pages of layer 1", asked_bytes=1)
    rest = plan.total_bytes - plan.kv_bytes + plan.upload_bytes
    for n_positions, fits in ((64, 64), (63, 48), (16, 16), (15, 0)):
        error = advise(plan, config, refused, rest + n_positions * plan.kv_bytes // 64)
        assert error.data == {"buffer": "KV pages of layer 1", "asked_bytes": 1, name: fits}
        assert (f"of {fits} or less" in error.hint) == (fits > 0)
    assert advise(plan, config, refused, rest - 1).data[name] == 0


def test_weights_that_are_too_large_even_in_slabs_are_named():
    with pytest.raises(OutOfMemory) as refused:
        planned(limits=Limits(100, 1 << 20))
    assert refused.value.data["buffer"] == "blk.0.qkv from row 0"
    assert "smaller model" in refused.value.hint
