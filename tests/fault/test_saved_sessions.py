"""A session that is saved and restored, in another engine, answers as if nothing had been."""

import asyncio

import pytest

from tests.support.fake_platform import Driver, FakePlatform, only
from tests.support.tiny_model import encode_tiny_model

PAGE = {"messages": [{"role": "user", "text": "Hello 👋"}]}


def driver_over(store, tiny, **config):
    platform = FakePlatform({"tiny.gguf": tiny})
    platform.store = store
    return Driver(platform, context_length=64, prefill_tokens=8, attention_splits=4, **config)


async def saved(new_driver, tiny, *, with_kv=False, n_tokens=8, **params):
    """Return a store with a session in it, and the whole answer."""
    driver = new_driver()
    await driver.load()
    whole = only(await driver.generate(max_tokens=20, **params), "finished")["output_ids"]
    await driver.reset()
    await driver.generate(max_tokens=n_tokens, **params)
    await driver.send("save_session", session=0, name="mine", page=PAGE, with_kv=with_kv)
    await driver.engine.idle()
    listed = only(driver.platform.events, "saved")["sessions"]
    assert [entry["name"] for entry in listed] == ["mine"]
    return driver.platform.store, whole


@pytest.mark.parametrize("with_kv", [False, True])
@pytest.mark.parametrize("params", [{}, {"temperature": 1.2, "seed": 77}])
def test_a_restored_session_goes_on_token_by_token(new_driver, tiny, with_kv, params):
    async def story():
        store, whole = await saved(new_driver, tiny, with_kv=with_kv, **params)
        driver = driver_over(store, tiny)
        await driver.load()
        await driver.open(1)
        await driver.send("restore_session", session=1, epoch=1, name="mine")
        driver.epochs[1] = 1
        await driver.engine.idle()
        restored = only(driver.platform.events, "restored")
        assert (restored["page"], restored["end"], restored["output_tokens"]) == (PAGE, "length", 8)
        assert (restored["kv_length"] > 0) == with_kv
        await driver.resume(session=1, max_tokens=20)
        await driver.engine.idle()
        assert driver.of("finished", 1)[-1]["output_ids"] == whole
        n_cached = driver.of("started", 1)[-1]["num_cached_tokens"]
        assert n_cached == restored["kv_length"]
        # The other session knows nothing of it.
        assert driver.of("state", 0)[-1]["kv_length"] == 0

    asyncio.run(story())


def test_the_cache_of_another_format_is_computed_again(new_driver, tiny):
    async def story():
        store, whole = await saved(new_driver, tiny, with_kv=True)
        driver = driver_over(store, tiny)
        await driver.load(kv_format="q8")
        await driver.send("restore_session", session=0, epoch=1, name="mine")
        driver.epochs[0] = 1
        await driver.engine.idle()
        assert only(driver.platform.events, "restored")["kv_length"] == 0
        events = await driver.continue_(max_tokens=12)
        assert only(events, "finished")["output_ids"][:8] == whole[:8]

    asyncio.run(story())


def test_a_pool_without_room_computes_it_again(new_driver, tiny):
    async def story():
        store, whole = await saved(new_driver, tiny, with_kv=True)
        driver = driver_over(store, tiny)
        await driver.load(context_length=16, pool_positions=16)
        await driver.send("restore_session", session=0, epoch=1, name="mine")
        driver.epochs[0] = 1
        await driver.engine.idle()
        assert only(driver.platform.events, "restored")["kv_length"] == 0
        # It is longer than the context now.
        assert only(await driver.continue_(max_tokens=12), "error")["code"] == "E603"
        assert whole

    asyncio.run(story())


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (lambda data: data[:-1], "truncated"),
        (lambda data: data[:100], "truncated"),
        (lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:], "damaged"),
        (lambda data: b"GGUF" + data[4:], "not_a_session"),
    ],
)
def test_a_bad_file_is_refused_and_the_session_stays(new_driver, tiny, golden, damage, cause):
    async def story():
        store, _ = await saved(new_driver, tiny)
        await store.write("mine", damage(await store.read("mine")))
        driver = driver_over(store, tiny)
        await driver.load()
        await driver.generate(max_tokens=4)
        await driver.send("restore_session", session=0, epoch=1, name="mine")
        await driver.engine.idle()
        error = only(driver.platform.events, "error")
        assert (error["code"], error["data"]["cause"], error["session"]) == ("E608", cause, 0)
        assert only(await driver.continue_(max_tokens=12), "finished")["output_ids"] == golden[1][:12]

    asyncio.run(story())


def test_a_session_of_another_model_is_refused(new_driver, tiny):
    async def story():
        store, _ = await saved(new_driver, tiny)
        driver = driver_over(store, encode_tiny_model(context_length=64, n_layers=1, seed=9).data)
        await driver.load()
        await driver.send("restore_session", session=0, epoch=1, name="mine")
        await driver.engine.idle()
        assert only(driver.platform.events, "error")["data"]["cause"] == "other_model"

    asyncio.run(story())


def test_an_empty_session_can_be_saved_and_deleted(new_driver, tiny):
    async def story():
        driver = new_driver()
        await driver.load()
        await driver.send("save_session", session=0, name="empty", page={}, with_kv=True)
        await driver.engine.idle()
        await driver.send("restore_session", session=0, epoch=1, name="empty")
        await driver.engine.idle()
        assert only(driver.platform.events, "restored")["end"] == ""
        await driver.send("delete_saved", name="empty")
        await driver.engine.idle()
        assert driver.platform.events[-1] == {"kind": "saved", "sessions": []}
        await driver.send("restore_session", session=0, epoch=2, name="empty")
        await driver.engine.idle()
        assert driver.platform.events[-1]["code"] == "E608"

    asyncio.run(story())


@pytest.mark.parametrize("kind", ["save_session", "restore_session"])
def test_without_a_model_it_is_a_typed_error(new_driver, kind):
    async def story():
        driver = new_driver()
        fields = {"page": {}} if kind == "save_session" else {"epoch": 1}
        await driver.send(kind, session=0, name="x", **fields)
        await driver.engine.idle()
        assert only(driver.platform.events, "error")["code"] == "E602"

    asyncio.run(story())
