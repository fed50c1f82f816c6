"""The benchmark's plan, its story over a client that answers by hand, and the arithmetic of its rows."""

import pytest

from clutch.protocol import EVENTS, REQUESTS, decode, encode
from ui import benchmark
from ui.benchmark_run import Run

CARD = {"bandwidth_gb_per_s": 4300, "dispatch_us": 1.9, "host_dispatch_us": 5}
PART = {"name": "gate_up ffn_gate", "dispatches": 30, "weight_bytes": 43_000_000, "kv_bytes": 0, "us": 20.0}
STEP = {"kind": "decode", "position": 40, "tokens": 1, "dispatches": 180, "us": 900.0, "rows": [PART]}
SAMPLE = {
    "prompt_tokens": 32,
    "output_tokens": 5,
    "ttft_ms": 10.0,
    "tokens_per_s": 900.0,
    "engine_ttft_ms": 8.0,
    "step_ms": 1.0,
    "python_ms": 0.2,
}


def test_the_plan_follows_the_adapter_and_the_url():
    assert benchmark.plan({}, False)["prompt_tokens"] == [32, 512, 2000, 8000]
    assert max(benchmark.plan({}, True)["prompt_tokens"]) <= 64
    given = benchmark.plan(
        {"bench_prompt_tokens": "8,16", "bench_answer_tokens": "4", "bench_samples": "2", "bench_chunk_tokens": "8"},
        False,
    )
    assert given == {"prompt_tokens": [8, 16], "answer_tokens": 4, "samples": 2, "chunk_tokens": 8}
    wrong = benchmark.plan({"bench_prompt_tokens": "x,-1,0", "bench_samples": "many"}, False)
    assert wrong == benchmark.plan({}, False)


@pytest.mark.parametrize(
    ("n_prompt", "context_length", "room"),
    [(32, 2048, 128), (2000, 2048, 48), (2040, 2048, 8), (2041, 2048, None), (8000, 2048, None), (8000, 8192, 128)],
)
def test_an_answer_takes_the_room_that_there_is(n_prompt, context_length, room):
    assert benchmark.answer_room(n_prompt, 128, context_length) == room


def test_a_short_answer_needs_no_more_than_itself():
    assert benchmark.answer_room(60, 4, 64) == 4
    assert benchmark.answer_room(61, 4, 64) is None


def test_prompts_have_the_wanted_words_and_differ():
    texts = [benchmark.prompt_of(50, seed) for seed in range(4)]
    assert {len(text.split()) for text in texts} == {50}
    assert len({text[:60] for text in texts}) == 4
    assert all(text.startswith(" ") for text in texts)
    assert benchmark.prompt_of(50, 3) == texts[3]


@pytest.mark.parametrize(
    ("parameters", "adapter", "bandwidth"),
    [
        ({}, {"vendor": "nvidia", "description": "NVIDIA H200"}, 4300),
        ({}, {"vendor": "nvidia", "description": ""}, None),
        ({}, {"vendor": "amd", "description": "H200"}, None),
        ({"bandwidth_gb_per_s": "900"}, {"vendor": "nvidia", "description": "NVIDIA H200"}, 900),
        ({"bandwidth_gb_per_s": "fast"}, {"vendor": "amd"}, None),
    ],
)
def test_the_bandwidth_is_known_or_given_or_not_claimed(parameters, adapter, bandwidth):
    assert benchmark.card(parameters, adapter)["bandwidth_gb_per_s"] == bandwidth


def test_the_limit_is_that_of_the_card_or_that_of_the_browser():
    # By hand: 4.3 GB at 4300 GB/s are 1 ms, and 100 dispatches of 1.9 us 0.19 ms.
    assert benchmark.limit_ms(100, 4_300_000_000, CARD) == pytest.approx(1.19)
    # 200 dispatches of 5 us are 1 ms; without bytes the card needs only 0.38 ms.
    assert benchmark.limit_ms(200, 0, CARD) == pytest.approx(1.0)
    assert benchmark.limit_ms(200, 0, dict(CARD, bandwidth_gb_per_s=None)) is None


def test_a_row_has_medians_rates_and_the_share_of_the_limit():
    samples = [dict(SAMPLE, ttft_ms=t, step_ms=s) for t, s in ((12.0, 1.0), (9.0, 4.0), (10.0, 1.0))]
    row = benchmark.row(30, samples, STEP, CARD)
    assert (row["wanted_tokens"], row["prompt_tokens"], row["ttft_ms"]) == (30, 32, 10.0)
    assert row["prefill_tokens_per_s"] == pytest.approx(4000)
    assert (row["decode_tokens_per_s"], row["engine_decode_tokens_per_s"]) == (900.0, 1000.0)
    assert row["gb_per_s"] == pytest.approx(43)
    # 180 dispatches of 5 us.
    assert row["limit_ms"] == pytest.approx(0.9)
    assert row["limit_share"] == pytest.approx(0.9)
    assert row["gpu_ms"] == pytest.approx(0.9)


def test_what_could_not_be_measured_is_none():
    samples = [dict(SAMPLE, tokens_per_s=None, step_ms=None, python_ms=None)] * 2
    step = dict(STEP, us=None, rows=[dict(PART, us=None)])
    row = benchmark.row(32, samples, step, dict(CARD, bandwidth_gb_per_s=None))
    names = ("decode_tokens_per_s", "engine_decode_tokens_per_s", "gb_per_s", "gpu_ms", "limit_ms", "limit_share")
    assert [row[name] for name in names] == [None] * 6
    assert benchmark.rate_gb_per_s(step["rows"][0]) is None


def test_a_part_of_a_step_has_its_rate():
    # By hand: 43 MB in 20 us.
    assert benchmark.rate_gb_per_s(PART) == pytest.approx(2150)
    assert benchmark.rate_gb_per_s(dict(PART, weight_bytes=0)) is None


class Client:
    """Keeps what it is asked; every message is one that the protocol knows."""

    def __init__(self):
        self.sent = []
        self.n_requests = 0

    def open_session(self, session):
        self._send("open_session", session=session, epoch=1)

    def close_session(self, session, is_stopping):
        self.sent.append(("close", session, is_stopping))

    def generate(self, session, **fields):
        return self._request("generate", session, fields)

    def measure(self, session, tokens):
        return self._request("benchmark", session, {"tokens": tokens})

    def _request(self, kind, session, fields):
        self.n_requests += 1
        self._send(kind, request_id=self.n_requests, session=session, epoch=1, **fields)
        return self.n_requests

    def _send(self, kind, **fields):
        self.sent.append(decode(REQUESTS, encode(REQUESTS, kind, **fields)))


class World:
    """A run with an engine that does what the test says; the clock stands where it is put."""

    def __init__(self, context_length=64, **plan):
        self.now = 0.0
        self.client = Client()
        wanted = {"prompt_tokens": [16], "answer_tokens": 4, "samples": 1, "chunk_tokens": 32, **plan}
        self.run = Run(self.client, 7, wanted, CARD, context_length, lambda: self.now)

    def hear(self, kind, **fields):
        fields = {"session": 7, "epoch": 1, **fields}
        return self.run.hear(decode(EVENTS, encode(EVENTS, kind, **fields)))

    def state(self, state, session=7):
        return self.hear("state", state=state, kv_length=0, session=session)

    @property
    def last(self):
        return self.client.sent[-1]

    def measured(self, step=STEP):
        self.state("generating")
        self.hear("benchmarked", request_id=self.client.n_requests, step=step)
        self.state("ready")

    def answered(self, reason="length"):
        number = self.client.n_requests
        n_prompt = len(self.last["prompt"].split())
        self.state("generating")
        self.hear("started", request_id=number, text="", prompt_ids=[1] * n_prompt, num_cached_tokens=0)
        for i in range(3):
            self.now += 10
            self.hear("delta", request_id=number, seq_no=i, text="x", token_ids=[1] * (i + 1))
        self.hear(
            "finished",
            request_id=number,
            reason=reason,
            output_ids=[1] * 6,
            text="xxx",
            usage={},
            timings={"ttft_ms": 8.0, "step_ms": 1.0, "python_ms": 0.1},
            ledger={},
        )
        self.state("ready")


def test_a_run_from_its_session_to_its_end():
    world = World(prompt_tokens=[16, 90], samples=2)
    assert world.last["kind"] == "open_session" and world.run.n_requests == 1 + 5
    world.state("ready")
    assert (world.last["kind"], world.last["tokens"]) == ("benchmark", 32)
    world.measured(dict(STEP, kind="prefill", tokens=32))
    prompts = []
    for _ in range(3):
        asked = world.last
        assert (asked["reuse"], asked["ignore_eos"], asked["params"]["max_tokens"]) == (False, True, 4)
        prompts.append(asked["prompt"])
        world.answered()
    assert len(set(prompts)) == 3 and len(prompts[0].split()) == 16
    assert (world.last["kind"], world.last["tokens"]) == ("benchmark", 1)
    world.measured()
    # The second turn: what was said, what was answered, and a little more.
    asked = world.last
    assert (asked["reuse"], asked["params"]["max_tokens"]) == (True, 1)
    assert asked["prompt"].startswith(prompts[-1] + "xxx ")
    assert len(asked["prompt"].split()) == 16 + benchmark.QUESTION_TOKENS
    assert world.run.rows[0]["second_turn_ttft_ms"] is None
    # Not drawn while it is measured.
    assert world.run.n_drawn == 0
    world.answered()
    assert (world.run.end, world.run.n_done, world.last) == ("done", 6, ("close", 7, False))
    assert world.run.rows[0]["second_turn_ttft_ms"] == 10
    row, skipped = world.run.rows
    # The first piece is the end of the prompt's time; five tokens came in the 20 ms behind it.
    assert (row["ttft_ms"], row["decode_tokens_per_s"], row["prompt_tokens"]) == (10, 250, 16)
    assert len(row["samples"]) == 2
    assert (skipped["skipped"], skipped["context_length"]) == ("context", 64)
    assert [step["kind"] for step in world.run.steps] == ["prefill", "decode"]


def test_nothing_of_other_sessions_and_requests_is_taken():
    world = World()
    assert not world.state("ready", session=0)
    world.state("ready")
    world.hear("benchmarked", request_id=99, step=STEP)
    world.hear("benchmarked", request_id=1, session=0, step=STEP)
    assert not world.state("ready")
    assert not world.run.hear(_error(session=0, code="E603", request_id=5))
    assert (world.run.end, world.run.n_done) == ("", 0)


def test_an_end_that_is_heard_before_the_session_is_ready_waits_for_it():
    world = World()
    world.state("ready")
    world.hear("benchmarked", request_id=1, step=STEP)
    assert world.client.n_requests == 1
    world.state("ready")
    assert world.client.n_requests == 2


def _error(**fields):
    wire = {"kind": "error", "request_id": None, "session": None, "epoch": 1, "message": "", "hint": "", "data": {}}
    return dict(wire, **fields)


@pytest.mark.parametrize(
    ("event", "end"),
    [
        (_error(session=7, code="E601", request_id=1), "E601"),
        (_error(session=7, code="E607"), "E607"),
        (_error(code="E700"), "E700"),
        ({"kind": "state", "session": 7, "state": "lost"}, "E602"),
        ({"kind": "state", "session": 7, "state": "empty"}, "E602"),
    ],
)
def test_what_goes_wrong_ends_it_and_closes_the_session(event, end):
    world = World()
    world.state("ready")
    assert world.run.hear(event)
    assert (world.run.end, world.last) == (end, ("close", 7, True))
    # And nothing more is said or asked.
    world.hear("benchmarked", request_id=1, step=STEP)
    world.state("ready")
    assert world.last == ("close", 7, True)


def test_a_stop_keeps_what_was_found():
    world = World(prompt_tokens=[16, 40], context_length=48)
    world.state("ready")
    world.measured()
    world.answered()
    world.answered()
    world.measured()
    world.answered()
    world.run.stop()
    assert (world.run.end, len(world.run.rows), world.last) == ("stopped", 1, ("close", 7, True))


def test_a_stop_from_elsewhere_ends_it_too():
    world = World()
    world.state("ready")
    world.measured()
    world.answered(reason="abort")
    assert world.run.end == "stopped"


def test_the_share_of_a_kernel_is_of_its_own_bytes_and_dispatches():
    # By hand: 43 MB at 4300 GB/s are 10 us, 30 dispatches of 1.9 us are 57 us.
    assert benchmark.part_share(dict(PART, us=134.0), CARD) == pytest.approx(0.5)
    assert benchmark.part_share(PART, dict(CARD, bandwidth_gb_per_s=None)) is None
    assert benchmark.part_share(dict(PART, us=None), CARD) is None
