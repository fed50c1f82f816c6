"""Tuning: what is faster is taken and kept, what is wrong is not; stopped or lost in the middle, nothing is left."""

import asyncio
import json

import pytest

from clutch.engine.lifecycle import EngineState
from clutch.errors import DeviceLost, DeviceTimeout
from clutch.gpu.limits import Limits
from clutch.gpu.products import Rows
from clutch.model import autotune
from clutch.model.recipe import ROLES
from tests.support import fake_device
from tests.support.fake_choice_store import FakeChoiceStore
from tests.support.fake_device import Script
from tests.support.fake_platform import Driver, FakePlatform, only

BUDGETS = {"context_length": 64, "prefill_tokens": 8, "attention_splits": 4, "upload_bytes": 1 << 16}
ROOMY = Limits(max_buffer_bytes=256 << 20, max_binding_bytes=128 << 20, max_workgroup_bytes=32 << 10)
# Long enough for all that can be tried, on any machine.
FOR_EVER = 10_000_000
FAST = 8


def us(kernel):
    """A GPU that likes eight lanes and two pairs."""
    shape = dict(kernel.constants)
    return 100.0 - 20 * (shape.get("LANES") == FAST) - 20 * (shape.get("PAIRS") == 2)


@pytest.fixture
def new_tuner(tiny):
    def make(script=None, *, tuning_ms=FOR_EVER, platform=None, **options):
        options = {"limits": ROOMY, "subgroup_size": 32, "us_per_dispatch": us, **options}
        platform = platform or FakePlatform({"tiny.gguf": tiny}, script, **options)
        return Driver(platform, tuning_ms=tuning_ms, **BUDGETS)

    return make


def kernels_of(events):
    return only(events, "loaded")["kernels"]


def products_of(driver):
    return driver.engine.host.placement.model.choice.recipe.decode.products


async def load_anew(new_tuner, platform, **options):
    """Load in a new worker of the same browser; return its driver, the events, and the calls of the load."""
    platform.script = Script()
    driver = new_tuner(platform=platform, **options)
    events = await driver.load()
    return driver, events, platform.script.calls


@pytest.mark.parametrize("subgroup_size", [32, 0], ids=["subgroups", "none"])
def test_what_is_faster_is_taken(new_tuner, golden, subgroup_size):
    async def story():
        driver = new_tuner(subgroup_size=subgroup_size)
        kernels = kernels_of(await driver.load())
        assert kernels["origin"] == "tuned"
        products = products_of(driver)
        assert set(products) == set(ROLES)
        for role, product in products.items():
            assert (product.lanes, product.pairs) == (FAST, 2), role
            assert product.meeting == ("subgroup" if subgroup_size else "workgroup")
        assert only(await driver.generate(max_tokens=12), "finished")["output_ids"] == golden[1]

    asyncio.run(story())


@pytest.mark.parametrize("subgroup_size", [32, 0], ids=["subgroups", "none"])
@pytest.mark.parametrize("us_per_dispatch", [None, 100.0, lambda kernel: us(kernel) / 40 + 97])
def test_what_is_hardly_faster_is_not(new_tuner, subgroup_size, us_per_dispatch):
    async def story():
        driver = new_tuner(subgroup_size=subgroup_size, us_per_dispatch=us_per_dispatch)
        plain = new_tuner(subgroup_size=subgroup_size, tuning_ms=0)
        assert kernels_of(await driver.load())["origin"] == "tuned"
        assert kernels_of(await plain.load())["origin"] == "default"
        assert products_of(driver) == products_of(plain)

    asyncio.run(story())


def test_a_second_load_tries_nothing_and_compiles_only_what_it_needs(new_tuner):
    async def story():
        first = new_tuner()
        await first.load()
        calls = first.platform.script.calls
        assert calls["measure"] > 0
        again, events, later = await load_anew(new_tuner, first.platform)
        assert kernels_of(events) == {"recipe": kernels_of(events)["recipe"], "origin": "kept", "tuning_ms": 0}
        assert products_of(again) == products_of(first)
        _, _, untuned = await load_anew(new_tuner, first.platform, tuning_ms=0)
        assert later["measure"] == 0
        assert later["compile"] == untuned["compile"] < calls["compile"]

    asyncio.run(story())


@pytest.mark.parametrize("changed", [{"limits": fake_device.GUARANTEED}, {"subgroup_size": 16}])
def test_another_gpu_is_tuned_by_itself_and_both_are_kept(new_tuner, changed):
    async def story():
        first = new_tuner()
        await first.load()
        platform, options = first.platform, first.platform.device_options
        platform.device_options = {**options, **changed}
        assert kernels_of((await load_anew(new_tuner, platform))[1])["origin"] == "tuned"
        for platform.device_options in (options, {**options, **changed}):
            assert kernels_of((await load_anew(new_tuner, platform))[1])["origin"] == "kept"

    asyncio.run(story())


def test_other_kernels_are_tuned_anew(new_tuner, monkeypatch):
    async def story():
        first = new_tuner()
        await first.load()
        monkeypatch.setattr(fake_device.FakeDevice, "kernels_id", "changed")
        assert kernels_of((await load_anew(new_tuner, first.platform))[1])["origin"] == "tuned"

    asyncio.run(story())


def spoilt(data):
    kept = json.loads(data)
    ((key, choice),) = kept.items()
    yield from (b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b"{}", data[:-3])
    unknown = {role: "Rows(lanes=1024)" for role in choice}
    for other in ({}, [], None, 7, "Rows()", unknown, {role: [1] for role in choice}):
        yield json.dumps({key: other}).encode()


def test_a_damaged_store_means_tuning_again(new_tuner):
    async def story():
        first = new_tuner()
        await first.load()
        platform, data = first.platform, first.platform.choice_store.data
        for damaged in spoilt(data):
            platform.choice_store.data = damaged
            assert kernels_of((await load_anew(new_tuner, platform))[1])["origin"] == "tuned", damaged[:80]
            assert kernels_of((await load_anew(new_tuner, platform))[1])["origin"] == "kept", damaged[:80]

    asyncio.run(story())


def test_without_storage_a_worker_remembers_all_the_same(new_tuner):
    async def story():
        driver = new_tuner()
        driver.platform.choice_store = FakeChoiceStore(is_missing=True)
        driver = new_tuner(platform=driver.platform)
        assert kernels_of(await driver.load())["origin"] == "tuned"
        await driver.send("unload")
        assert kernels_of(await driver.load())["origin"] == "kept"
        assert kernels_of((await load_anew(new_tuner, driver.platform))[1])["origin"] == "tuned"

    asyncio.run(story())


def test_a_gpu_that_comes_back_gets_the_same_kernels(new_tuner, golden):
    async def story():
        driver = new_tuner()
        driver.platform.choice_store.is_missing = True
        await driver.load()
        before, calls = products_of(driver), driver.platform.script.calls["measure"]
        driver.platform.devices[0].lose()
        events = await driver.generate(max_tokens=12)
        assert only(driver.platform.events, "notice")["code"] == "E500"
        assert products_of(driver) == before
        assert driver.platform.script.calls["measure"] == calls
        await driver.engine.idle()
        finished = [event for event in events if event["kind"] == "finished"] or [
            only(await driver.generate(max_tokens=12), "finished")
        ]
        assert finished[0]["output_ids"] == golden[1]

    asyncio.run(story())


@pytest.mark.parametrize("options", [{"is_fallback": True}, {"tuning_ms": 0}])
def test_neither_a_software_adapter_nor_one_without_time_tries_anything(new_tuner, options):
    async def story():
        driver = new_tuner(**options)
        assert kernels_of(await driver.load())["origin"] == "default"
        assert driver.platform.script.calls["measure"] == 0
        assert driver.platform.choice_store.data == b""

    asyncio.run(story())


def test_when_the_time_is_over_what_was_found_stays(new_tuner, monkeypatch):
    async def story(n_looks):
        driver = new_tuner()
        looks = iter(range(n_looks))
        monkeypatch.setattr(autotune, "perf_counter", lambda: 0.0 if next(looks, None) is not None else 2.0 * FOR_EVER)
        assert kernels_of(await driver.load())["origin"] == "tuned"
        return driver.platform.script.calls["measure"], [product.lanes for product in products_of(driver).values()]

    found = [asyncio.run(story(n_looks)) for n_looks in range(2, 12)]
    n_measured = [count for count, _ in found]
    assert n_measured == sorted(n_measured)
    assert n_measured[0] == 0 < n_measured[-1]


def test_an_alternative_of_the_output_leaves_no_more_candidates_than_there_is_room_for(new_tuner):
    async def story():
        options = {"subgroup_size": 0, "us_per_dispatch": lambda kernel: 1e4 / dict(kernel.constants).get("LANES", 1)}
        driver, plain = new_tuner(**options), new_tuner(**options, tuning_ms=0)
        await driver.load()
        await plain.load()
        assert products_of(driver)["down"].lanes == 32
        n_rows = 320
        head = [products_of(one)["lm_head"].workgroups(n_rows) for one in (driver, plain)]
        assert head[0] <= head[1]

    asyncio.run(story())


HONEST = fake_device.compute


def wrong_where(is_wrong):
    """Return kernels of which some add something to a matrix product."""

    def compute(kernel, buffers, step):
        HONEST(kernel, buffers, step)
        if kernel.spec.name == "gate_up" and is_wrong(dict(kernel.constants), kernel.files):
            buffers[-1].view("float32")[::8] += 3.0

    return compute


def test_tuned_kernels_that_are_wrong_give_way_to_the_default(new_tuner, golden, monkeypatch):
    async def story():
        monkeypatch.setattr(fake_device, "compute", wrong_where(lambda shape, _: shape.get("LANES") == FAST))
        driver = new_tuner()
        kernels = kernels_of(await driver.load())
        assert kernels["origin"] == "default"
        assert products_of(driver)["gate_up"].lanes == 32
        assert only(await driver.generate(max_tokens=12), "finished")["output_ids"] == golden[1]
        # The weights went up once, and the next load does not begin with what was wrong.
        assert len(driver.platform.sources[0].streams) == 1
        again, events, calls = await load_anew(new_tuner, driver.platform)
        assert (kernels_of(events)["origin"], calls["measure"]) == ("kept", 0)
        assert products_of(again) == products_of(driver)

    asyncio.run(story())


def test_kept_kernels_that_have_become_wrong_give_way_to_the_default(new_tuner, monkeypatch):
    async def story():
        driver = new_tuner()
        await driver.load()
        monkeypatch.setattr(fake_device, "compute", wrong_where(lambda shape, _: shape.get("LANES") == FAST))
        assert kernels_of((await load_anew(new_tuner, driver.platform))[1])["origin"] == "default"
        assert kernels_of((await load_anew(new_tuner, driver.platform))[1])["origin"] == "kept"

    asyncio.run(story())


def test_when_the_default_is_wrong_too_the_portable_kernels_do_it(new_tuner, golden, monkeypatch):
    async def story():
        monkeypatch.setattr(fake_device, "compute", wrong_where(lambda _, files: "lanes_subgroup" in files))
        driver = new_tuner()
        assert kernels_of(await driver.load()) == {"recipe": "portable", "origin": "default", "tuning_ms": 0}
        assert only(await driver.generate(max_tokens=12), "finished")["output_ids"] == golden[1]
        # What failed has given everything back, and none of it is kept.
        total_bytes = driver.engine.host.placement.model.memory.total_bytes
        assert driver.engine.ledger.to_wire()["bytes"] == pytest.approx(total_bytes, rel=1e-3)
        assert driver.platform.choice_store.data == b""
        await driver.send("unload")
        assert driver.engine.ledger.to_wire() == {"buffers": 0, "bytes": 0}

    asyncio.run(story())


def n_measures(new_tuner):
    driver = new_tuner()
    asyncio.run(driver.load())
    return driver.platform.script.calls["measure"]


@pytest.mark.parametrize("error", [DeviceLost, DeviceTimeout])
def test_a_gpu_that_is_lost_while_tuning_is_fetched_back_and_tuned(new_tuner, golden, error):
    async def story(fail_at):
        driver = new_tuner(Script(only="measure", fail_at=fail_at, error=error))
        kernels = kernels_of(await driver.load())
        assert kernels["origin"] == "tuned"
        assert only(driver.platform.events, "notice")["code"] == "E500"
        assert [device.is_destroyed for device in driver.platform.devices] == [True, False]
        assert only(await driver.generate(max_tokens=4), "finished")["output_ids"] == golden[1][:4]

    total = n_measures(new_tuner)
    for fail_at in (1, 2, total // 2, total):
        asyncio.run(story(fail_at))


def test_a_stop_while_tuning_leaves_nothing(new_tuner, golden):
    async def story(act_at):
        driver = new_tuner(Script(only="measure", act_at=act_at))
        stops = []
        driver.platform.script.act = lambda: stops.append(asyncio.ensure_future(driver.send("stop", request_id=1)))
        assert only(await driver.load(), "finished")["reason"] == "abort"
        await asyncio.gather(*stops)
        assert driver.platform.script.calls["measure"] <= act_at + 1
        assert driver.engine.state is EngineState.EMPTY
        assert driver.engine.ledger.to_wire() == {"buffers": 0, "bytes": 0}
        assert driver.platform.devices[0].is_destroyed
        assert driver.platform.choice_store.data == b""
        assert kernels_of(await driver.load())["origin"] == "tuned"
        assert only(await driver.generate(max_tokens=4), "finished")["output_ids"] == golden[1][:4]

    total = n_measures(new_tuner)
    for act_at in (1, 2, total // 2, total):
        asyncio.run(story(act_at))


def test_the_arithmetic_stays_as_the_recipe_has_it():
    from clutch.model.alternatives import alternatives

    for default in (Rows(), Rows(32, 1, 128, "subgroup"), Rows(16, 2, 128, "subgroup", is_int8=True)):
        for size in (0, 4, 8, 16, 32, 128):
            for other in alternatives(default, size):
                assert (other.is_int8, other.tokens) == (default.is_int8, default.tokens)
                assert other != default
                assert other.meeting == "workgroup" or other.lanes <= max(size, default.lanes)
