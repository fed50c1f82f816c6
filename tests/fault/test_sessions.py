"""Several sessions on one engine: each answers as if it were alone, and what befalls one does not touch another."""

import asyncio

import pytest

from clutch.protocol import MAX_SESSIONS
from tests.support.fake_device import Script
from tests.support.fake_platform import only

QUESTION = [{"role": "user", "content": "Hello"}]
OTHER = [{"role": "user", "content": "the cat and the hat"}]


def of_session(events, session, kind=None):
    found = [event for event in events if event.get("session") == session]
    return [event for event in found if event["kind"] == kind] if kind else found


def ids(events, session):
    """Return the ids of the last answer of a session."""
    return of_session(events, session, "finished")[-1]["output_ids"]


def pool(driver):
    return [event for event in driver.platform.events if event["kind"] == "pool"][-1]


async def alone(new_driver, messages, **params):
    driver = new_driver()
    await driver.load()
    return only(await driver.generate(messages, **params), "finished")["output_ids"]


@pytest.fixture
def asked(new_driver):
    """Return the answers of engines with one session only."""

    def make(*questions, **params):
        async def story():
            return [await alone(new_driver, question, **params) for question in questions]

        return asyncio.run(story())

    return make


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


@pytest.mark.parametrize("call", ["submit", "result"])
@pytest.mark.parametrize("fail_at", [1, 4, 9, 14])
def test_all_go_on_after_the_gpu_was_lost(new_driver, asked, call, fail_at):
    async def story():
        script = Script(only=call)
        driver = new_driver(script)
        await driver.load()
        await driver.open(1)
        await driver.open(2)
        await driver.ask(QUESTION, session=0, max_tokens=12)
        await driver.ask(OTHER, session=1, max_tokens=12)
        while not driver.of("started", 1):
            await asyncio.sleep(0)
        script.fail_at = script.n_counted + fail_at
        await driver.engine.idle()
        return driver

    expected = asked(QUESTION, OTHER, max_tokens=12)
    driver = asyncio.run(story())
    events = driver.platform.events
    assert [ids(events, 0), ids(events, 1)] == expected
    assert [event["code"] for event in events if event["kind"] == "notice"] == ["E500"]
    assert [event for event in events if event["kind"] == "error"] == []
    for session in range(3):
        states = [event["state"] for event in of_session(events, session, "state")]
        assert "lost" in states
        assert states[-1] == "ready"
    assert len(driver.platform.devices) == 2


def test_a_stop_in_one_while_the_gpu_comes_back_leaves_the_other_waiting(new_driver, asked):
    async def story():
        script = Script(only="result")
        driver = new_driver(script)
        await driver.load()
        await driver.open(1)
        script.fail_at = script.n_counted + 8
        await driver.ask(QUESTION, session=0, max_tokens=12)
        victim = await driver.ask(OTHER, session=1, max_tokens=12)
        while driver.engine.state != "lost":
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        await driver.send("stop", request_id=victim, session=1)
        await driver.engine.idle()
        return driver.platform.events

    [expected] = asked(QUESTION, max_tokens=12)
    events = asyncio.run(story())
    assert ids(events, 0) == expected
    assert of_session(events, 1, "finished")[0]["reason"] == "abort"
    assert of_session(events, 1, "state")[-1]["state"] == "ready"


def test_a_gpu_that_is_lost_too_often_fails_each_of_them_once(new_driver):
    async def story():
        driver = new_driver(Script(only="result"))
        await driver.load()
        await driver.open(1)
        requests = [await driver.ask(QUESTION, session=session, max_tokens=12) for session in (0, 1)]
        while not driver.of("started", 1):
            await asyncio.sleep(0)
        driver.platform.script.fail_at = driver.platform.script.n_counted + 3
        driver.platform.script.for_ever = True
        await driver.engine.idle()
        return driver, requests

    driver, requests = asyncio.run(story())
    errors = [event for event in driver.platform.events if event["kind"] == "error"]
    assert sorted(error["request_id"] for error in errors) == requests
    assert {error["code"] for error in errors} == {"E500"}
    assert [session.state for session in driver.engine.sessions] == ["empty", "empty"]
    assert driver.engine.ledger.to_wire() == {"buffers": 0, "bytes": 0}
