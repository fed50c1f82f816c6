"""DeepSeek-R1's template drops the reasoning of earlier answers: the cache is used exactly up to there."""

import asyncio

import pytest

from clutch.kv.pool import PAGE_POSITIONS
from tests.support import r1_model
from tests.support.fake_platform import Driver, FakePlatform, only


@pytest.fixture(scope="module")
def r1():
    return r1_model.encode_r1_model().data


def test_the_second_turn_reuses_up_to_the_dropped_reasoning(r1):
    async def turn(driver, messages, *, reuse=True):
        events = await driver.generate(messages, max_tokens=r1_model.MAX_TOKENS, reuse=reuse)
        return only(events, "started"), only(events, "finished")

    async def story():
        driver = Driver(FakePlatform({"tiny.gguf": r1}), context_length=256, prefill_tokens=32, attention_splits=4)
        await driver.load()
        question = {"role": "user", "content": r1_model.QUESTION}
        start, end = await turn(driver, [question])
        first, answer = start["prompt_ids"], end["output_ids"]
        think_end = r1_model.think_end_id()
        assert answer.count(think_end) == 1
        n_reasoning = answer.index(think_end) + 1

        messages = [
            question,
            {"role": "assistant", "content": end["text"]},
            {"role": "user", "content": r1_model.NEXT_QUESTION},
        ]
        start, end = await turn(driver, messages)
        second = start["prompt_ids"]
        # By hand: both begin with the question; then the first turn reasons, and the second prompt has what came
        # behind the reasoning. Only what both have in common is in the cache.
        n_shared = next(i for i, (a, b) in enumerate(zip([*first, *answer], second, strict=False)) if a != b)
        assert second[n_shared : n_shared + 2] != answer[n_shared - len(first) : n_shared - len(first) + 2]
        rest = answer[n_reasoning:]
        joined = ",".join(map(str, second))
        assert ",".join(map(str, rest)) in joined
        assert ",".join(map(str, answer[:n_reasoning])) not in joined
        assert start["num_cached_tokens"] == n_shared
        assert len(first) - 2 * PAGE_POSITIONS < n_shared <= len(first)

        _, anew = await turn(driver, messages, reuse=False)
        assert anew["output_ids"] == end["output_ids"]

    asyncio.run(story())
