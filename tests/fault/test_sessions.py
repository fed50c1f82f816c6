"""Several sessions on one engine: each answers as if it were alone, and what befalls one does not touch another."""

import asyncio

import pytest

from clutch.protocol import MAX_SESSIONS
from tests.support.fake_platform import only
from tests.support.session_events import OTHER, QUESTION, ids, of_session


def pool(driver):
    return [event for event in driver.platform.events if event["kind"] == "pool"][-1]


@pytest.mark.parametrize("is_fallback", [False, True])
def test_two_that_write_at_once_answer_as_if_alone(new_driver, asked, is_fallback):
    async def story():
        driver = new_driver(is_fallback=is_fallback)
        await driver.load()
        await driver.open(1)
        await driver.ask(QUESTION, session=0, max_tokens=12)
        await driver.ask(OTHER, session=1, max_tokens=12)
        await driver.engine.idle()
        return driver.platform.events

    expected = asked(QUESTION, OTHER, max_tokens=12)
    events = asyncio.run(story())
    assert [ids(events, 0), ids(events, 1)] == expected
    # Neither waits for the end of the other.
    order = [event["session"] for event in events if event["kind"] == "delta"]
    assert order[:6] != [0] * 6
    first_end = next(i for i, event in enumerate(events) if event["kind"] == "finished")
    deltas = [event["session"] for event in events[:first_end] if event["kind"] == "delta"]
    assert min(deltas.count(0), deltas.count(1)) >= 8


def test_a_batch_is_one_step(new_driver):
    async def story():
        driver = new_driver()
        await driver.load()
        for session in range(1, 4):
            await driver.open(session)
        before = driver.platform.script.calls["submit"]
        for session in range(4):
            await driver.ask(QUESTION, session=session, max_tokens=12)
        await driver.engine.idle()
        return driver.platform.script.calls["submit"] - before

    # Four answers of 12 tokens one after the other take 44 decode steps and four prompts of several chunks.
    assert asyncio.run(story()) <= 30


@pytest.mark.parametrize("how", ["stop", "reset", "close"])
@pytest.mark.parametrize("n_turns", [0, 3, 20, 40])
def test_what_ends_one_leaves_the_other_alone(new_driver, asked, how, n_turns):
    async def story():
        driver = new_driver()
        await driver.load()
        await driver.open(1)
        victim = await driver.ask(OTHER, session=1, max_tokens=20)
        await driver.ask(QUESTION, session=0, max_tokens=20)
        for _ in range(n_turns):
            await asyncio.sleep(0)
        if how == "stop":
            await driver.send("stop", request_id=victim, session=1)
        elif how == "reset":
            await driver.reset(1)
        else:
            await driver.send("close_session", session=1)
        await driver.engine.idle()
        return driver

    [expected] = asked(QUESTION, max_tokens=20)
    driver = asyncio.run(story())
    events = driver.platform.events
    assert ids(events, 0) == expected
    assert of_session(events, 1, "finished")[0]["reason"] in ("abort", "length")
    if how == "close":
        assert events[-1]["kind"] in ("pool", "closed", "state") and of_session(events, 1, "closed")
        assert set(pool(driver)["cells"]) <= {".", "0", "-"}
    else:
        assert of_session(events, 1, "state")[-1]["state"] == "ready"


def test_a_stopped_one_goes_on_beside_the_other(new_driver, asked):
    async def story():
        driver = new_driver()
        await driver.load()
        await driver.open(1)
        victim = await driver.ask(QUESTION, session=1, max_tokens=20)
        await driver.ask(OTHER, session=0, max_tokens=20)
        while len(of_session(driver.platform.events, 1, "delta")) < 4:
            await asyncio.sleep(0)
        await driver.send("stop", request_id=victim, session=1)
        while not of_session(driver.platform.events, 1, "finished"):
            await asyncio.sleep(0)
        await driver.settle(1)
        await driver.resume(session=1)
        await driver.engine.idle()
        return driver.platform.events

    expected = asked(OTHER, QUESTION, max_tokens=20)
    events = asyncio.run(story())
    assert [ids(events, 0), ids(events, 1)] == expected


def test_a_shared_prefix_is_computed_once(new_driver, asked):
    system = [{"role": "system", "content": "x" * 24}]

    async def story():
        driver = new_driver()
        await driver.load()
        await driver.open(1)
        await driver.ask([*system, *QUESTION], session=0, max_tokens=4)
        await driver.engine.idle()
        await driver.ask([*system, *OTHER], session=1, max_tokens=4)
        await driver.engine.idle()
        return driver

    driver = asyncio.run(story())
    first, second = (of_session(driver.platform.events, session, "started")[0] for session in (0, 1))
    n_common = next(
        i for i, (a, b) in enumerate(zip(first["prompt_ids"], second["prompt_ids"], strict=False)) if a != b
    )
    assert second["num_cached_tokens"] == n_common // 16 * 16 > 0
    assert pool(driver)["shared"] == n_common // 16
    assert [ids(driver.platform.events, s) for s in (0, 1)] == asked(
        [*system, *QUESTION], [*system, *OTHER], max_tokens=4
    )


def test_two_that_read_the_same_prompt_at_once_share_the_work(new_driver):
    async def story(n_sessions):
        driver = new_driver()
        await driver.load()
        before = driver.platform.script.calls["submit"]
        for session in range(1, n_sessions):
            await driver.open(session)
        for session in range(n_sessions):
            await driver.ask([{"role": "user", "content": "q" * 20}], session=session, max_tokens=1)
        await driver.engine.idle()
        return driver.platform.script.calls["submit"] - before

    one, two = asyncio.run(story(1)), asyncio.run(story(2))
    assert one < two < 2 * one


def test_a_fork_goes_its_own_way_from_shared_pages(new_driver, asked):
    async def story():
        driver = new_driver()
        await driver.load()
        await driver.generate(QUESTION, max_tokens=6)
        await driver.open(1, source=0)
        shared = pool(driver)
        await driver.resume(session=0)
        await driver.resume(session=1)
        await driver.engine.idle()
        return driver, shared

    [expected] = asked(QUESTION, max_tokens=12)
    driver, shared = asyncio.run(story())
    opened = only(driver.platform.events, "opened")
    assert (opened["source"], opened["session"]) == (0, 1)
    assert shared["used"] == shared["shared"] == -(-opened["kv_length"] // 16)
    assert ids(driver.platform.events, 0) == ids(driver.platform.events, 1) == expected
    # At most the last page is two now.
    after = pool(driver)
    assert after["shared"] >= shared["shared"] - 1


def test_sixteen_are_the_most(new_driver):
    async def story():
        driver = new_driver()
        await driver.load()
        for session in range(1, MAX_SESSIONS):
            await driver.open(session)
        for bad in (MAX_SESSIONS, 3, -1):
            await driver.open(bad)
        await driver.generate(max_tokens=3)
        return driver.platform.events

    events = asyncio.run(story())
    errors = [event for event in events if event["kind"] == "error"]
    assert [error["code"] for error in errors] == ["E607"] * 3
    assert "16 of 16" in errors[0]["message"]
    assert len([event for event in events if event["kind"] == "opened"]) == MAX_SESSIONS - 1
    assert len(ids(events, 0)) == 3


@pytest.mark.parametrize(
    ("kind", "fields", "code"),
    [
        ("open_session", {"session": 2, "epoch": 0, "source": 1}, "E606"),
        ("generate", {"session": 1, "epoch": 0, "messages": QUESTION, "params": {}, "request_id": 9}, "E606"),
        ("continue", {"session": 1, "epoch": 0, "request_id": 9}, "E606"),
        ("stop", {"session": 1, "request_id": 9}, "E606"),
        ("reset", {"session": 1, "epoch": 1}, "E606"),
        ("close_session", {"session": 1}, "E606"),
        ("close_session", {"session": 0}, "E600"),
        ("save_session", {"session": 1, "name": "x", "page": {}}, "E606"),
        ("restore_session", {"session": 1, "epoch": 0, "name": "x"}, "E606"),
        ("restore_session", {"session": 0, "epoch": 1, "name": "never saved"}, "E608"),
    ],
)
def test_a_closed_session_answers_nothing_and_harms_nobody(new_driver, asked, kind, fields, code):
    async def story():
        driver = new_driver()
        await driver.load()
        await driver.open(1)
        await driver.send("close_session", session=1)
        await driver.engine.idle()
        await driver.send(kind, **fields)
        await driver.engine.idle()
        error = only(driver.platform.events, "error")
        assert error["code"] == code
        assert error["request_id"] == fields.get("request_id")
        driver.n_requests = 20
        return only(await driver.generate(QUESTION, max_tokens=8), "finished")["output_ids"]

    assert [asyncio.run(story())] == asked(QUESTION, max_tokens=8)


def test_a_number_can_be_used_again(new_driver):
    async def story():
        driver = new_driver()
        await driver.load()
        await driver.open(1)
        await driver.ask(OTHER, session=1, max_tokens=4)
        await driver.engine.idle()
        await driver.send("close_session", session=1)
        await driver.engine.idle()
        await driver.open(1)
        await driver.ask(OTHER, session=1, max_tokens=4)
        await driver.engine.idle()
        return driver.platform.events

    started = of_session(asyncio.run(story()), 1, "started")
    assert [event["num_cached_tokens"] for event in started] == [0, 0]


def test_a_busy_one_is_not_forked(new_driver):
    async def story():
        driver = new_driver()
        await driver.load()
        await driver.ask(QUESTION, session=0, max_tokens=12)
        await asyncio.sleep(0)
        await driver.open(1, source=0)
        await driver.engine.idle()
        return driver.platform.events

    events = asyncio.run(story())
    error = only(events, "error")
    assert (error["code"], error["session"]) == ("E601", 1)
    assert len(ids(events, 0)) == 12


@pytest.mark.parametrize("kind", ["close_session", "generate", "reset"])
def test_what_comes_right_behind_a_close_finds_no_session(new_driver, kind):
    async def story():
        driver = new_driver()
        await driver.load()
        await driver.open(1)
        await driver.send("close_session", session=1)
        fields = {
            "close_session": {},
            "generate": {"request_id": 9, "epoch": 0, "messages": QUESTION, "params": {}},
            "reset": {"epoch": 1},
        }[kind]
        await driver.send(kind, session=1, **fields)
        await driver.engine.idle()
        assert only(driver.platform.events, "error")["code"] == "E606"
        assert only(driver.platform.events, "closed")["session"] == 1
        # And the number is free.
        await driver.open(1)
        driver.n_requests = 20
        await driver.ask(QUESTION, session=1, max_tokens=3)
        await driver.engine.idle()
        assert len(ids(driver.platform.events, 1)) == 3

    asyncio.run(story())
