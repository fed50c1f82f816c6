"""A prompt of 1,500 tokens is read in chunks; Stop ends it within the chunk in flight, and nothing is read twice."""

import asyncio

import pytest

from tests.support.fake_platform import Driver, FakePlatform, only
from tests.support.tiny_model import encode_tiny_model

CONTEXT = 2048
N_PROMPT = 1500
MAX_TOKENS = 4
# Every byte but a newline is a token of its own in digits; see `tiny_model.MERGES`.
PROMPT = "".join(str(i * i % 7) for i in range(N_PROMPT))


@pytest.fixture(scope="module")
def long_model():
    return encode_tiny_model(n_layers=1, context_length=CONTEXT).data


@pytest.fixture
def reading(long_model):
    """Make a loaded driver whose chunks are noted as (position, tokens); a tile of 8 tokens takes `ms_a_tile`."""

    async def make(ms_a_tile, *, prefill_tokens=256, prefill_ms=25, is_fallback=False):
        platform = FakePlatform({"tiny.gguf": long_model}, is_fallback=is_fallback)
        platform.tick_s = 0.001
        platform.tick_s = 0.001
        driver = Driver(
            platform,
            context_length=CONTEXT,
            prefill_tokens=prefill_tokens,
            attention_splits=4,
            prefill_ms=prefill_ms,
        )
        await driver.load()
        chunks, device = [], platform.devices[0]
        step = device.step

        def noting(plan, sequences, n_tokens):
            [(_, position)] = sequences
            chunks.append((position, n_tokens))
            platform._now += -(-n_tokens // 8) * ms_a_tile / 1000
            return step(plan, sequences, n_tokens)

        device.step = noting
        return driver, chunks

    return make


async def ask(driver, **params):
    first = len(driver.platform.events)
    fields = {"request_id": driver.next_request_id, "epoch": driver.epoch, "prompt": PROMPT}
    driver.n_requests += 1
    await driver.send("generate", **fields, params={"max_tokens": MAX_TOKENS, **params})
    await driver.engine.idle()
    return driver.platform.events[first:]


@pytest.fixture(scope="module")
def whole(long_model):
    """The uninterrupted answer, and the chunks of its prompt."""

    async def story():
        driver = Driver(FakePlatform({"tiny.gguf": long_model}), context_length=CONTEXT, prefill_tokens=256)
        await driver.load()
        events = await ask(driver)
        assert len(only(events, "started")["prompt_ids"]) == N_PROMPT
        return only(events, "finished")["output_ids"]

    return asyncio.run(story())


def prefill_sizes(chunks):
    """Return the sizes of the chunks of the prompt, which follow each other without a gap."""
    read = [(at, n) for at, n in chunks if at < N_PROMPT]
    assert [at for at, _ in read] == [sum(n for _, n in read[:i]) for i in range(len(read))]
    return [n for _, n in read]


def test_chunks_follow_the_clock_up_to_the_room(reading, whole):
    async def story():
        driver, chunks = await reading(0.1)
        assert only(await ask(driver), "finished")["output_ids"] == whole
        # A quarter of the room at first, because nothing is known; then twice as many each time.
        assert prefill_sizes(chunks) == [64, 128, 256, 256, 256, 256, 256, 28]

    asyncio.run(story())


def test_a_slower_gpu_gets_chunks_that_fit_the_target(reading, whole):
    async def story():
        # The clock of the fake takes a millisecond a look, so two tiles take 21 of the 25.
        driver, chunks = await reading(10)
        assert only(await ask(driver), "finished")["output_ids"] == whole
        sizes = prefill_sizes(chunks)
        assert sizes[:3] == [64, 16, 16] and set(sizes[1:-1]) == {16}

    asyncio.run(story())


def test_a_software_adapter_has_a_second(reading, whole):
    async def story():
        driver, chunks = await reading(100, is_fallback=True)
        assert only(await ask(driver), "finished")["output_ids"] == whole
        sizes = prefill_sizes(chunks)
        # 32 tokens, the most of one step there, take 400 ms.
        assert sizes[:4] == [8, 16, 32, 32] and set(sizes[2:-1]) == {32}

    asyncio.run(story())


@pytest.mark.parametrize("by", ["message", "shared mark"])
@pytest.mark.parametrize("at_chunk", [1, 2, 3, 5, 7, 8])
def test_stop_at_a_chunk_ends_with_it_and_the_rest_is_read_later(reading, whole, at_chunk, by):
    class Mark:
        value = 0

        def read(self, session):
            return self.value

    async def story():
        driver, chunks = await reading(0.1)
        mark, device = Mark(), driver.platform.devices[0]
        if by == "shared mark":
            driver.engine.sessions[0].mark._shared = lambda: mark.read(0)
        step, stops = device.step, []

        def stopping(plan, sequences, n_tokens):
            # While this chunk is on its way to the GPU.
            if len(chunks) + 1 == at_chunk and not stops:
                mark.value = 2
                stops.append(driver.send("stop", request_id=2) if by == "message" else asyncio.sleep(0))
                stops[0] = asyncio.ensure_future(stops[0])
            return step(plan, sequences, n_tokens)

        device.step = stopping
        finished = only(await ask(driver), "finished")
        await stops[0]
        assert (finished["reason"], finished["output_ids"], finished["text"]) == ("abort", [], "")
        assert len(chunks) == at_chunk
        n_read = sum(n for _, n in chunks)
        assert finished["usage"]["kv_length"] == finished["usage"]["committed_tokens"] == n_read
        rest = await driver.continue_()
        # Only the last token of a prompt that is known whole is computed again.
        assert only(rest, "started")["num_cached_tokens"] == min(n_read, N_PROMPT - 1)
        assert chunks[at_chunk][0] == min(n_read, N_PROMPT - 1)
        assert only(rest, "finished")["output_ids"] == whole

    asyncio.run(story())
