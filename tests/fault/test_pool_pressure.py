"""A pool that is too small for all: the idle give their pages first, then there is a typed error; nothing is lost."""

import asyncio

import pytest

from tests.support.fake_platform import only

QUESTION = [{"role": "user", "content": "Hello"}]
PAGE = 16


async def loaded(new_driver, pool_positions):
    driver = new_driver()
    await driver.load(pool_positions=pool_positions)
    return driver


async def answer(driver, session, n_tokens, text="Hello"):
    await driver.ask([{"role": "user", "content": text}], session=session, max_tokens=n_tokens)
    await driver.engine.idle()
    return driver.platform.events


def last(driver, kind, session=None):
    found = [e for e in driver.platform.events if e["kind"] == kind and session in (None, e.get("session"))]
    return found[-1]


def test_the_longest_idle_gives_its_pages_and_computes_them_again(new_driver):
    async def story():
        # Room for one and a half of the answers below.
        driver = await loaded(new_driver, 96)
        await driver.open(1)
        await driver.open(2)
        await answer(driver, 0, 20)
        whole = last(driver, "finished", 0)["output_ids"]
        await answer(driver, 1, 20, "the cat")
        await answer(driver, 2, 20, "a dog and")
        assert last(driver, "pool")["used"] <= 6
        # Tokens are kept: the same question again gives the same answer, and some of it is computed anew.
        await driver.resume(session=0, max_tokens=24)
        await driver.engine.idle()
        finished = last(driver, "finished", 0)
        assert finished["output_ids"][:20] == whole
        assert finished["usage"]["num_cached_tokens"] < finished["usage"]["prompt_tokens"] + 19
        return driver

    driver = asyncio.run(story())
    assert [event for event in driver.platform.events if event["kind"] == "error"] == []


def test_without_idle_ones_it_is_a_typed_error_and_the_others_go_on(new_driver):
    async def story():
        driver = await loaded(new_driver, 64)
        await driver.open(1)
        await driver.ask(QUESTION, session=0, max_tokens=24)
        await driver.ask([{"role": "user", "content": "the cat"}], session=1, max_tokens=24)
        await driver.engine.idle()
        return driver

    driver = asyncio.run(story())
    errors = [event for event in driver.platform.events if event["kind"] == "error"]
    assert [error["code"] for error in errors] == ["E605"]
    assert errors[0]["data"]["total_pages"] == 4
    refused = errors[0]["session"]
    assert len(last(driver, "finished", 1 - refused)["output_ids"]) == 24
    for session in (0, 1):
        assert last(driver, "state", session)["state"] == "ready"
    assert last(driver, "started", refused)


def test_the_refused_answer_can_be_continued_when_there_is_room_again(new_driver):
    async def story():
        driver = await loaded(new_driver, 64)
        expected = only(await driver.generate(QUESTION, max_tokens=24), "finished")["output_ids"]
        await driver.reset()
        await driver.open(1)
        await driver.ask(QUESTION, session=0, max_tokens=24)
        await driver.ask([{"role": "user", "content": "the cat"}], session=1, max_tokens=24)
        await driver.engine.idle()
        refused = only(driver.platform.events, "error")["session"]
        await driver.reset(1 - refused)
        await driver.resume(session=refused)
        await driver.engine.idle()
        found = last(driver, "finished", refused)["output_ids"]
        return refused, found, expected

    refused, found, expected = asyncio.run(story())
    assert len(found) == 24
    if refused == 0:
        assert found == expected


def test_a_reset_leaves_nothing_to_be_found(new_driver):
    async def story():
        driver = await loaded(new_driver, 128)
        await answer(driver, 0, 20)
        await answer(driver, 0, 4, "something else that is longer")
        await driver.reset()
        assert last(driver, "pool")["cells"] == "." * 8
        await answer(driver, 0, 4)
        return last(driver, "started")["num_cached_tokens"]

    assert asyncio.run(story()) == 0


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"context_length": 0}, "E600"),
        ({"context_length": 17}, "E600"),
        ({"context_length": 80}, "E603"),
        ({"pool_positions": 32}, "E600"),
        ({"kv_format": "q3"}, "E600"),
    ],
)
def test_what_cannot_be_loaded_is_refused(new_driver, fields, code):
    async def story():
        driver = new_driver()
        events = await driver.load(**fields)
        assert only(events, "error")["code"] == code
        assert driver.engine.state == "empty"
        await driver.load()
        return only(await driver.generate(max_tokens=3), "finished")["output_ids"]

    assert len(asyncio.run(story())) == 3
