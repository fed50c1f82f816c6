"""The tasks of a session: side by side, except those that are exclusive."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from clutch.engine.work import Work


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=12))
def test_what_is_exclusive_overlaps_with_nothing_before_and_nothing_behind(begun):
    spans = {}

    async def piece(number, n_turns):
        start = len(spans), asyncio.get_running_loop().time()
        running.add(number)
        seen[number] = set(running)
        for _ in range(n_turns):
            await asyncio.sleep(0)
            seen[number] |= running
        running.discard(number)
        spans[number] = start

    async def story():
        work = Work()
        for number, (is_exclusive, n_turns) in enumerate(begun):
            (work.begin_exclusive if is_exclusive else work.begin)(piece(number, n_turns))
        while work.tasks:
            await asyncio.wait(work.tasks)

    running, seen = set(), {}
    asyncio.run(story())
    assert len(spans) == len(begun)
    for number, (is_exclusive, _) in enumerate(begun):
        if is_exclusive:
            assert seen[number] == {number}


def test_requests_run_side_by_side():
    async def story():
        first, second = asyncio.Event(), asyncio.Event()

        async def meet(mine, other):
            mine.set()
            await other.wait()

        work = Work()
        work.begin(meet(first, second))
        work.begin(meet(second, first))
        await asyncio.wait_for(asyncio.wait(work.tasks), 1)

    asyncio.run(story())
