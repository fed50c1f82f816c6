"""What a GPU must offer, as `worker/probe.js` says it: enough for every kernel, and no more than every GPU has."""

import ast
import operator
import re
from pathlib import Path

import pytest

from clutch.gpu.kernels import KERNELS, UNIFORM
from clutch.gpu.limits import Limits

PROBE = (Path(__file__).parents[2] / "worker/probe.js").read_text("utf-8")

# WebGPU's guaranteed minima (specification, "Limits"): what every conforming GPU has is never refused.
GUARANTEED = {
    "maxComputeInvocationsPerWorkgroup": 256,
    "maxComputeWorkgroupSizeX": 256,
    "maxComputeWorkgroupStorageSize": 16384,
    "maxComputeWorkgroupsPerDimension": 65535,
    "maxStorageBuffersPerShaderStage": 8,
    "maxStorageBufferBindingSize": 128 << 20,
    "maxBufferSize": 256 << 20,
}


def number(text):
    """Return the value of `256` or `128 << 20`."""
    parts = [ast.literal_eval(part) for part in text.split("<<")]
    return operator.lshift(*parts) if len(parts) == 2 else parts[0]


@pytest.fixture(scope="module")
def required():
    (table,) = re.findall(r"const REQUIRED = \{(.*?)\};", PROBE, re.S)
    return {name: number(value) for name, value in re.findall(r"(\w+): ([^,]+),", table)}


def test_every_conforming_gpu_is_enough(required):
    assert set(required) == set(GUARANTEED)
    assert all(required[name] <= GUARANTEED[name] for name in required)


def test_the_kernels_ask_for_no_more_than_is_required(required):
    for spec in KERNELS.values():
        assert spec.workgroup_size <= required["maxComputeInvocationsPerWorkgroup"]
        assert spec.workgroup_size <= required["maxComputeWorkgroupSizeX"]
        storage = [binding for binding, access in spec.bindings if access != UNIFORM]
        assert len(storage) <= required["maxStorageBuffersPerShaderStage"]


def test_the_limits_of_the_memory_plan_are_among_those_asked_for(required):
    assert {"maxBufferSize", "maxStorageBufferBindingSize"} <= set(required)


def test_a_buffer_must_be_made_and_bound():
    assert Limits(100, 50).largest_buffer_bytes == 50
    assert Limits(50, 100).largest_buffer_bytes == 50
