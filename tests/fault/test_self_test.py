"""A GPU that computes wrong numbers in one way is refused at load, and nothing of it is left."""

import asyncio

import numpy as np
import pytest

from clutch.engine.lifecycle import EngineState
from clutch.model import recipe
from tests.support import fake_device
from tests.support.fake_platform import only

HONEST = fake_device.compute


# Its last output is not the one to spoil.
LOGITS = {"lm_head": -1}


def spoiled(name, spoil, *, only_prefill=False):
    """Return kernels of which `name` does its work and then `spoil`s its output, or that of its prefill kernels."""

    def compute(kernel, buffers, step):
        HONEST(kernel, buffers, step)
        shape = dict(kernel.constants)
        is_prefill = "TILE_TOKENS" in shape or shape.get("TOKENS", 1) > 1
        if kernel.spec.name == name and (is_prefill or not only_prefill):
            spoil(buffers[: LOGITS.get(name)])

    return compute


def floats(data):
    return data.view(np.float32)


def flip_rows(buffers):
    floats(buffers[-1])[:] = floats(buffers[-1])[::-1].copy()


def move_rows(buffers):
    floats(buffers[-1])[:] = np.roll(floats(buffers[-1]), 1)


def scale(buffers):
    floats(buffers[-1])[:] *= 1.01


def one_nan(buffers):
    floats(buffers[-1])[7] = np.nan


def one_infinite(buffers):
    floats(buffers[-1])[7] = np.inf


def all_nan(buffers):
    floats(buffers[-1])[:] = np.nan


def all_zero(buffers):
    buffers[-1][:] = 0


def another_token(buffers):
    buffers[-1].view(np.uint32)[0] ^= 1


def add_a_little(buffers):
    floats(buffers[-1])[:] += 0.1


def swallow_a_part(buffers):
    floats(buffers[-1])[::8] = 0


WRONG = {
    "the output matrix backwards": spoiled("lm_head", flip_rows),
    "the output matrix moved by a row": spoiled("lm_head", move_rows),
    "logits too large by a hundredth": spoiled("lm_head", scale),
    "a logit that is no number": spoiled("lm_head", one_nan),
    "a logit without end": spoiled("lm_head", one_infinite),
    "no logit is a number": spoiled("lm_head", all_nan),
    "no logits at all": spoiled("lm_head", all_zero),
    "a residual stream of no numbers": spoiled("embed", all_nan),
    "another token sampled": spoiled("sample", another_token),
    "prefill adds something to a matrix product": spoiled("matmul_add", add_a_little, only_prefill=True),
    "prefill loses a part of the gate": spoiled("gate_up", swallow_a_part, only_prefill=True),
    "prefill stores other keys and values": spoiled("qkv", add_a_little, only_prefill=True),
    "nothing is computed": lambda *_: None,
}


@pytest.mark.parametrize("way", WRONG)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_gpu_that_is_wrong_in_one_way_is_refused(new_driver, golden, monkeypatch, way):
    async def story():
        driver = new_driver()
        monkeypatch.setattr(fake_device, "compute", WRONG[way])
        events = await driver.load()
        error = only(events, "error")
        assert (error["code"], error["request_id"]) == ("E101", 1)
        assert error["data"].keys() == {"what", "found", "expected"}
        assert "loaded" not in [event["kind"] for event in events]
        assert driver.engine.state is EngineState.EMPTY
        assert driver.engine.ledger.to_wire() == {"buffers": 0, "bytes": 0}
        assert driver.platform.devices[0].is_destroyed
        # The same model on a sound GPU.
        monkeypatch.setattr(fake_device, "compute", HONEST)
        await driver.load()
        assert only(await driver.generate(max_tokens=12), "finished")["output_ids"] == golden[1]

    asyncio.run(story())


def test_a_sound_gpu_passes_and_says_how_much_was_compared(new_driver):
    async def story():
        loaded = only(await new_driver().load(), "loaded")
        assert loaded["self_test"]["verdict"] == "passed"
        # Every logit of the vocabulary, and rows of the file.
        assert loaded["self_test"]["checks"] > 313

    asyncio.run(story())


@pytest.mark.parametrize(
    ("way", "expected"), [(None, "8-bit"), ("prefill loses a part of the gate", "portable"), ("no logits at all", None)]
)
def test_activations_as_bytes_may_drift_but_not_far(new_driver, monkeypatch, way, expected):
    async def story():
        monkeypatch.setattr(recipe, "_INT8_HIDDEN_SIZE", 0)
        if way:

            def compute(kernel, buffers, step):
                is_concerned = expected is None or "TILE_TOKENS" in dict(kernel.constants)
                (WRONG[way] if is_concerned else HONEST)(kernel, buffers, step)

            monkeypatch.setattr(fake_device, "compute", compute)
        events = await new_driver().load()
        if expected is None:
            assert only(events, "error")["code"] == "E101"
        else:
            assert expected in only(events, "loaded")["kernels"]["recipe"]

    asyncio.run(story())


def test_a_gpu_that_comes_back_wrong_is_refused_in_the_middle_of_an_answer(new_driver, monkeypatch):
    async def story():
        driver = new_driver()
        await driver.load()
        script = driver.platform.script

        def lose():
            driver.platform.devices[0].lose()
            monkeypatch.setattr(fake_device, "compute", WRONG["the output matrix backwards"])

        script.act_at, script.act = script.n_counted + 9, lose
        error = only(await driver.generate(max_tokens=12), "error")
        assert (error["code"], error["request_id"]) == ("E101", 2)
        assert driver.engine.state is EngineState.EMPTY
        assert driver.engine.ledger.to_wire() == {"buffers": 0, "bytes": 0}
        assert all(device.is_destroyed for device in driver.platform.devices)

    asyncio.run(story())
