"""Random commands in random order and timing, against a small model of what the engine may be afterwards.

Messages go through one queue, as in `clutch/main.py`; between two of them the event loop makes some turns, or as many
as it takes to settle. Two sessions take turns. Every question is the same and greedy, so every answer is a beginning of
the same tokens.
"""

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clutch import protocol
from clutch.engine.lifecycle import TRANSITIONS, EngineState
from clutch.engine.recovery import MOST
from clutch.errors import ClutchError
from clutch.kv.pool import PAGE_POSITIONS
from tests.support.fake_platform import only

EMPTY, READY = EngineState.EMPTY, EngineState.READY
QUESTION = [{"role": "user", "content": "Hello"}]
SETTLED = None

# As they come from the page: not JSON, unknown, incomplete, of the wrong type.
BAD_TEXTS = (
    "",
    "[]",
    "{",
    '{"kind": "sing"}',
    '{"kind": "stop"}',
    '{"kind": "stop", "request_id": "1"}',
    '{"kind": "reset", "epoch": 1.5}',
    '{"kind": "generate", "request_id": true, "epoch": 0, "params": {}}',
    '{"kind": "unload", "now": 1}',
)
# Well-formed, but the engine cannot grant them.
BAD_QUESTIONS = (
    {"messages": QUESTION, "params": {"temperature": -1}},
    {"params": {}},
    {"messages": QUESTION, "prompt": "both", "params": {}},
    {"messages": [{"role": "user"}], "params": {}},
    {"prompt": "many words " * 50, "params": {}},
)

COMMANDS = st.one_of(
    st.tuples(st.just("load"), st.sampled_from(["tiny.gguf", "tiny.gguf", "nowhere.gguf"])),
    st.tuples(st.just("generate"), st.integers(1, 8)),
    st.tuples(st.just("generate"), st.integers(1, 8)),
    st.tuples(st.just("continue"), st.none() | st.integers(1, 8)),
    st.tuples(st.just("ask badly"), st.sampled_from(BAD_QUESTIONS)),
    # The last request, older ones, none at all, and one that has not come yet.
    st.tuples(st.just("stop"), st.sampled_from([0, 0, 0, -1, -1000, 1])),
    st.tuples(st.just("reset"), st.booleans()),
    st.tuples(st.just("unload"), st.none()),
    st.tuples(st.just("lose"), st.none()),
    st.tuples(st.just("talk nonsense"), st.sampled_from(BAD_TEXTS)),
)
TURNS = st.sampled_from([0, 0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, SETTLED, SETTLED])
SESSIONS = st.sampled_from([0, 0, 1])
SEQUENCES = st.lists(st.tuples(COMMANDS, SESSIONS, TURNS), max_size=10)


class Model:
    """What may be once everything has settled."""

    def __init__(self):
        self.may_be = {EMPTY}
        self.mark = 0
        self.n_losses = 0

    def do(self, command, argument, request_id, is_settled):
        """Learn of a command; `is_settled` says that nothing was going on."""
        match command:
            case "load" if EMPTY in self.may_be and argument == "tiny.gguf" and request_id > self.mark:
                self.may_be = {READY} if is_settled else {READY, EMPTY}
            case "stop":
                # It ends a load, or gives up a GPU on its way back.
                self.mark = max(self.mark, request_id)
                self.may_be |= set() if is_settled else {EMPTY}
            case "unload":
                self.may_be = {EMPTY}
            case "lose" if READY in self.may_be:
                self.n_losses += 1
                if self.n_losses > MOST:
                    self.may_be = {EMPTY} if is_settled and self.n_losses == MOST + 1 else {EMPTY, READY}
            case "reset" if not is_settled and self.n_losses > 1:
                # A second loss under a stopped request ends in nothing.
                self.may_be |= {EMPTY}


class World:
    """An engine behind a queue of messages, and what was asked of it."""

    def __init__(self, driver):
        self.driver = driver
        self.platform = driver.platform
        self.engine = driver.engine
        self.asked = {}
        self.model = Model()
        self._inbox = asyncio.Queue()
        self._n_requests = 0
        self._epochs = [0, 0]
        self._is_settled = True
        self._is_fresh = [True, True]
        self.faults = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self.faults.append(context))

    async def serve(self):
        while True:
            text = await self._inbox.get()
            try:
                message = protocol.decode(protocol.REQUESTS, text)
            except ClutchError as error:
                self.engine.report(error, None)
            else:
                await self.engine.handle(message)
            self._inbox.task_done()

    async def do(self, command, argument, turns, session=0):
        request_id = self._request_id(command, argument)
        happens = command != "lose" or self._living_device() is not None
        self.model.do(command if happens else "nothing", argument, request_id, self._is_settled)
        self._command(command, argument, request_id, session)
        self._is_settled = False
        # Behind a reset nothing is kept, whatever was running when it came.
        if command in ("reset", "generate", "continue"):
            self._is_fresh[session] = command == "reset"
        elif command == "unload":
            self._is_fresh = [True, True]
        if turns is SETTLED:
            await self.settle()
        for _ in range(turns or 0):
            await asyncio.sleep(0)

    def _command(self, command, argument, request_id, session):
        asked = {"request_id": request_id, "session": session, "epoch": self._epochs[session]}
        match command:
            case "load":
                self._ask("load", request_id=request_id, url=argument)
            case "generate":
                self._ask("generate", **asked, messages=QUESTION, params={"max_tokens": argument})
            case "continue":
                self._ask("continue", **asked, params={} if argument is None else {"max_tokens": argument})
            case "ask badly":
                self._ask("generate", **asked, **argument)
            case "stop":
                self._send("stop", request_id=request_id, session=session)
            case "reset":
                self._epochs[session] += 1
                self._send("reset", epoch=self._epochs[session], session=session, wipe=argument)
            case "open":
                self._send("open_session", epoch=self._epochs[session], session=session)
            case "unload":
                self._send("unload")
            case "lose":
                self._lose()
            case "talk nonsense":
                self._inbox.put_nowait(argument)

    async def settle(self):
        """Wait until nothing is left to do: no message, no task, no call that the loop owes."""
        for _ in range(4):
            await asyncio.sleep(0)
            await self._inbox.join()
            while others := self._others():
                await asyncio.wait(others)
        self._is_settled = True
        assert self.engine.state in self.model.may_be
        self.model.may_be = {self.engine.state}
        self._check_resources()

    async def answer(self, max_tokens):
        """Return the ids of an answer after a reset."""
        await self.do("reset", False, SETTLED)
        await self.do("generate", max_tokens, SETTLED)
        return [event for event in self.platform.events if event["kind"] == "finished"][-1]["output_ids"]

    def _request_id(self, command, argument):
        if command == "stop":
            return self._n_requests + argument
        if command in ("load", "generate", "continue", "ask badly"):
            self._n_requests += 1
            return self._n_requests
        return 0

    def skip_stopped(self):
        """Number the next request above every Stop so far."""
        self._n_requests = max(self._n_requests, self.model.mark)

    def _ask(self, kind, **fields):
        self.asked[fields["request_id"]] = kind
        self._send(kind, **fields)

    def _send(self, kind, **fields):
        self._inbox.put_nowait(protocol.encode(protocol.REQUESTS, kind, **fields))

    def _lose(self):
        device = self._living_device()
        if device is not None:
            device.lose()

    def _living_device(self):
        """Return the device that can be lost: the same one is not lost twice."""
        for device in self.platform.devices[-1:]:
            if not device.is_destroyed and not device.is_lost:
                return device
        return None

    def _others(self):
        return {task for task in asyncio.all_tasks() if task.get_name() not in ("serve", "story")}

    def _check_resources(self):
        ledger = self.engine.ledger.to_wire()
        alive = [device for device in self.platform.devices if not device.is_destroyed]
        states = [
            [
                event
                for event in self.platform.events
                if event["kind"] == "state" and event["session"] == session.number
            ][-1]
            for session in self.engine.sessions
        ]
        if self.engine.state is EMPTY:
            assert ledger == {"buffers": 0, "bytes": 0}
            assert alive == []
            assert all(stream.is_closed for source in self.platform.sources for stream in source.streams)
            return
        assert ledger == [event["ledger"] for event in self.platform.events if event["kind"] == "loaded"][-1]
        assert alive == self.platform.devices[-1:]
        assert not alive[0].is_lost
        assert alive[0].n_in_flight == 0
        held = set()
        for state, epoch, is_fresh in zip(states, self._epochs, self._is_fresh, strict=True):
            assert (state["state"], state["epoch"]) == ("ready", epoch)
            assert state["kv_length"] == 0 or not is_fresh
            sequence = self.engine.sessions[state["session"]].conversation.sequence
            assert len(sequence.token_ids) == sequence.length == sequence.table.length == state["kv_length"]
            assert len(sequence.table.pages) == -(-state["kv_length"] // PAGE_POSITIONS)
            held |= set(sequence.table.pages)
        pool = self.engine.host.placement.pool
        assert pool.n_pages - pool.n_free - pool.n_cached == len(held)


def check_request(events, request_id, kind, whole):
    """One request, by the events that carry its number."""
    ignored = ("notice", "trimmed")
    events = [event for event in events if event.get("request_id") == request_id and event["kind"] not in ignored]
    kinds = [event["kind"] for event in events]
    endings = [k for k in kinds if k in ("finished", "error")]
    if kind == "load":
        assert kinds == endings and len(kinds) <= 1
        return
    assert len(endings) == 1
    assert kinds[-1] == endings[0]
    assert kinds in (["error"], ["started", *["delta"] * (len(kinds) - 2), endings[0]])
    deltas = [event for event in events if event["kind"] == "delta"]
    assert [delta["seq_no"] for delta in deltas] == list(range(len(deltas)))
    if endings == ["error"]:
        return
    finished = events[-1]
    assert events[0]["text"] + "".join(delta["text"] for delta in deltas) == finished["text"]
    new_ids = [token_id for delta in deltas for token_id in delta["token_ids"]]
    output_ids = finished["output_ids"]
    assert output_ids == whole[: len(output_ids)]
    assert output_ids[len(output_ids) - len(new_ids) :] == new_ids
    assert finished["usage"]["kv_length"] == finished["usage"]["committed_tokens"]
    assert {event["epoch"] for event in events} == {finished["epoch"]}


def check_states(events):
    for session in (0, 1):
        states = [
            EngineState(event["state"]) for event in events if event["kind"] == "state" and event["session"] == session
        ]
        for before, after in zip([EMPTY, *states], states, strict=False):
            assert before == after or after in TRANSITIONS[before]


async def run_sequence(driver, sequence, whole):
    asyncio.current_task().set_name("story")
    world = World(driver)
    serving = asyncio.create_task(world.serve(), name="serve")
    try:
        # Every sequence begins with a load: without one there is little to do.
        await world.do("open", None, 0, session=1)
        for (command, argument), session, turns in [(("load", "tiny.gguf"), 0, 144), *sequence]:
            await world.do(command, argument, turns, session)
        await world.settle()
        world.skip_stopped()
        if world.engine.state is EMPTY:
            await world.do("load", "tiny.gguf", SETTLED)
            assert world.engine.state is READY
        assert await world.answer(6) == whole[:6]
        await world.do("unload", None, SETTLED)
        for request_id, kind in world.asked.items():
            check_request(world.platform.events, request_id, kind, whole)
        check_states(world.platform.events)
        # A bug of ours says E900; what the loop could not tell anyone is one too.
        assert "E900" not in [event.get("code") for event in world.platform.events]
        assert world.faults == []
    finally:
        serving.cancel()


@pytest.fixture(scope="module")
def whole(tiny):
    """The greedy answer to QUESTION until the context is full."""
    from tests.support.fake_platform import Driver, FakePlatform

    async def story():
        driver = Driver(FakePlatform({"tiny.gguf": tiny}), context_length=64, prefill_tokens=8, attention_splits=4)
        await driver.load()
        return only(await driver.generate(max_tokens=1000), "finished")["output_ids"]

    return asyncio.run(story())


def any_order(n_sequences):
    quiet = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]

    @settings(max_examples=n_sequences, suppress_health_check=quiet)
    @given(SEQUENCES)
    def test(new_driver, whole, sequence):
        asyncio.run(run_sequence(new_driver(), sequence, whole))

    return test


test_any_order_of_commands = any_order(200)
test_any_order_of_commands_all_night = pytest.mark.nightly(any_order(10_000))
