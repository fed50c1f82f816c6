"""The dispatches of a step: how many there are, and what they bind."""

import asyncio

import pytest

from clutch.config import EngineConfig
from clutch.formats.gguf import parse_header
from clutch.gpu.kernels import KERNELS, WRITE
from clutch.gpu.ledger import Ledger
from clutch.gpu.limits import AdapterInfo
from clutch.kv.layout import F16, Q8
from clutch.model.llama import Llama
from clutch.model.memory import plan_memory
from clutch.model.recipe import PORTABLE, PREFILL_TOKENS_PER_THREAD, recipe_for
from clutch.model.runner import StepPlans
from clutch.model.spec_reader import read_spec
from clutch.model.state import allocate_state
from clutch.model.weights import WeightPlan
from tests.support.fake_device import GUARANTEED, FakeDevice
from tests.support.tiny_model import encode_tiny_model

SEPARATE = [
    "rms_norm",
    "qkv",
    "attention_partial",
    "attention_merge",
    "matmul_add",
    "rms_norm",
    "gate_up",
    "matmul_add",
]
FUSED = ["qkv", "attention_split", "attention_merge", "matmul_add", "gate_up", "matmul_add"]
TILES = ["rms_norm", "qkv", "attention_tile", "matmul_add", "rms_norm", "gate_up", "matmul_add"]
REAL = AdapterInfo("real", "", "", is_fallback=False, subgroup_size=32)
# WebGPU's guaranteed maxComputeWorkgroupsPerDimension.
MAX_WORKGROUPS = 65535
HEAD = ["lm_head", "sample"]


async def step_plans(kv_format=F16, adapter=None, **model):
    data = encode_tiny_model(**model).data
    header = parse_header(data, len(data))
    spec, config = read_spec(header), EngineConfig(context_length=64, kv_format=kv_format)
    recipe = recipe_for(spec, adapter, GUARANTEED) if adapter else PORTABLE
    weight_plan = WeightPlan(spec, header, GUARANTEED.largest_buffer_bytes)
    memory = plan_memory(spec, weight_plan, config, GUARANTEED, recipe)
    scope = Ledger().scope(FakeDevice())
    weights = await weight_plan.allocate(scope)
    state = await allocate_state(memory, scope)
    return StepPlans(Llama(spec, weights, state, memory, recipe), recipe), state, weights


def names(dispatches):
    return [dispatch.kernel.spec.name for dispatch in dispatches]


@pytest.mark.parametrize("n_layers", [1, 2, 5])
@pytest.mark.parametrize("tied", [False, True])
def test_a_fused_decode_step_has_six_dispatches_a_layer_and_three(n_layers, tied):
    plans, _, _ = asyncio.run(step_plans(adapter=REAL, n_layers=n_layers, tied=tied))
    assert names(plans.decode) == ["embed", *(FUSED * n_layers), *HEAD]
    assert len(plans.decode) == 6 * n_layers + 3
    assert names(plans.prefill) == ["embed", *(TILES * n_layers)]
    assert [most for most, _ in plans.last] == [16, 128, 1024]
    assert plans.last[0][1] is plans.decode


def test_eight_bit_keys_and_values_cost_a_dispatch_a_layer():
    plans, _, _ = asyncio.run(step_plans(Q8, REAL))
    layer = ["qkv", "kv_store_q8", *FUSED[1:]]
    assert names(plans.decode) == ["embed", *(layer * 2), *HEAD]


def test_without_subgroups_norms_and_merges_are_dispatches_of_their_own():
    plans, _, _ = asyncio.run(step_plans())
    assert names(plans.decode) == ["embed", *(SEPARATE * 2), "rms_norm", *HEAD]
    assert names(plans.prefill) == ["embed", *(SEPARATE * 2)]
    assert [names(plan) for _, plan in plans.last] == [names(plans.decode)]
    assert not any(kernel.needs_subgroups for kernel in plans.kernels)


@pytest.mark.parametrize("adapter", [None, REAL])
def test_every_dispatch_is_one_of_the_registry_with_a_buffer_a_binding(adapter):
    plans, _, _ = asyncio.run(step_plans(tied=False, adapter=adapter))
    for dispatch in [*plans.decode, *plans.prefill, *(d for _, plan in plans.last for d in plan)]:
        spec = dispatch.kernel.spec
        assert KERNELS[spec.name] is spec
        assert spec.has_step
        assert len(dispatch.buffers) == len(spec.bindings)
        assert dispatch.kernel in plans.kernels
        assert 0 < dispatch.workgroups <= MAX_WORKGROUPS
        # WebGPU forbids a buffer that a dispatch writes to be bound a second time.
        written = [b for b, (_, access) in zip(dispatch.buffers, spec.bindings, strict=True) if access == WRITE]
        assert all([id(b) for b in dispatch.buffers].count(id(buffer)) == 1 for buffer in written)


def test_each_layer_has_keys_and_values_of_its_own():
    plans, state, _ = asyncio.run(step_plans(n_layers=3))
    for name, binding in (("qkv", 7), ("attention_partial", 1)):
        bound = [dispatch.buffers[binding] for dispatch in plans.decode if dispatch.kernel.spec.name == name]
        assert [buffer.label for buffer in bound] == [buffer.label for buffer in state.kv]


@pytest.mark.parametrize("adapter", [None, REAL])
@pytest.mark.parametrize(("kv_format", "files"), [(F16, {"keep_f16", "kv_f16"}), (Q8, {"keep_f32", "kv_q8"})])
def test_keys_and_values_are_written_and_read_in_the_format_of_the_plan(kv_format, files, adapter):
    plans, _, _ = asyncio.run(step_plans(kv_format, adapter))
    used = {file for kernel in plans.kernels for file in kernel.files if file.startswith(("kv_", "keep_"))}
    assert used == files


def test_the_head_works_a_sequence_at_a_time():
    plans, _, _ = asyncio.run(step_plans())
    a_sequence = [name for name, d in zip(names(plans.decode), plans.decode, strict=True) if not d.tokens_per_workgroup]
    assert a_sequence == ["lm_head", "sample"]


def test_the_head_reads_the_output_matrix_or_the_embedding():
    for tied in (False, True):
        plans, _, weights = asyncio.run(step_plans(tied=tied))
        lm_head = next(d for d in plans.decode if d.kernel.spec.name == "lm_head")
        assert lm_head.buffers[0] is weights.output.slabs[0].quants
        assert (weights.output is weights.embedding) == tied


def test_the_portable_decode_and_prefill_differ_only_in_tokens_a_thread():
    plans, _, _ = asyncio.run(step_plans())
    for decode, prefill in zip(plans.decode, plans.last[0][1], strict=True):
        assert decode.buffers == prefill.buffers
        assert decode.threads == prefill.threads
        changed = dict(set(prefill.kernel.constants) - set(decode.kernel.constants))
        assert changed in ({}, {"TOKENS": PREFILL_TOKENS_PER_THREAD})
        assert prefill.tokens_per_workgroup in (decode.tokens_per_workgroup, PREFILL_TOKENS_PER_THREAD)
