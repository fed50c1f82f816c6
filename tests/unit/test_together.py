"""Two works side by side: results in order, the first error alone, nothing left running."""

import asyncio

import pytest

from clutch.together import together


async def after(turns, result=None, *, error=None, ended=None):
    try:
        for _ in range(turns):
            await asyncio.sleep(0)
        if error:
            raise error
        return result
    finally:
        if ended is not None:
            ended.append(turns)


@pytest.mark.parametrize(("a", "b"), [(1, 5), (5, 1), (0, 0)])
def test_results_come_in_order(a, b):
    assert asyncio.run(together(after(a, "a"), after(b, "b"))) == ("a", "b")


@pytest.mark.parametrize(("a", "b"), [(1, 9), (9, 1)])
def test_the_first_error_ends_the_other_work_and_is_raised_alone(a, b):
    ended = []
    works = [after(n, error=KeyError(n), ended=ended) for n in (a, b)]
    with pytest.raises(KeyError) as raised:
        asyncio.run(together(*works))
    assert raised.value.args == (1,)
    assert sorted(ended) == [1, 9]


def test_whoever_is_cancelled_ends_both():
    ended = []

    async def story():
        task = asyncio.ensure_future(together(after(9, ended=ended), after(8, ended=ended)))
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sorted(ended) == [8, 9]

    asyncio.run(story())
