"""The stop mark: a Stop that is early, twice or late is neither lost nor leaks into the next request.

And the cancellation of one request: what waits is interrupted where it waits, its `finally` blocks have run.
"""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clutch.engine.control import Cancellation, Interrupted, StopMark


class Shared:
    def __init__(self, value=0):
        self.value = value
        self.reads = 0

    def __call__(self):
        self.reads += 1
        return self.value


def test_nothing_is_stopped_at_first():
    assert not StopMark(None).is_stopped(1)
    assert not StopMark(Shared()).is_stopped(1)


def test_a_stop_before_its_request_is_kept():
    mark = StopMark(None)
    mark.raise_to(3)
    assert mark.is_stopped(3)


def test_a_stop_twice_is_one_stop():
    mark = StopMark(None)
    mark.raise_to(3)
    mark.raise_to(3)
    assert mark.is_stopped(3)
    assert not mark.is_stopped(4)


def test_a_late_stop_lowers_nothing_and_reaches_no_later_request():
    mark = StopMark(None)
    mark.raise_to(5)
    mark.raise_to(2)
    assert mark.is_stopped(5)
    assert not mark.is_stopped(6)


@given(st.lists(st.integers(1, 50)), st.integers(1, 60), st.none() | st.integers(0, 60))
def test_stopped_is_what_the_highest_mark_says(raised, request_id, shared):
    mark = StopMark(None if shared is None else Shared(shared))
    for number in raised:
        mark.raise_to(number)
    assert mark.is_stopped(request_id) == (max([0, *raised, shared or 0]) >= request_id)


def test_the_shared_mark_is_seen_without_a_message_and_read_once_a_question():
    shared = Shared()
    mark = StopMark(shared)
    assert not mark.is_stopped(1)
    shared.value = 1
    assert mark.is_stopped(1)
    assert not mark.is_stopped(2)
    assert shared.reads == 3


class Work:
    """Waits for ever, and notes that it began and was cleaned up."""

    def __init__(self):
        self.notes = []

    async def run(self):
        self.notes.append("began")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.notes.append("cleaned up")


async def interrupted(cancellation, act):
    """Let `act` end what `cancellation` waits for, and return the notes of the work."""
    work = Work()
    waiting = asyncio.ensure_future(cancellation.waiting_for(work.run()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert work.notes == ["began"]
    act()
    with pytest.raises(Interrupted):
        await waiting
    assert not waiting.cancelled()
    return work.notes


def test_a_stop_interrupts_what_waits():
    async def story():
        mark = StopMark(None)
        cancellation = Cancellation(3, mark)

        def stop():
            mark.raise_to(3)
            cancellation.interrupt()

        assert await interrupted(cancellation, stop) == ["began", "cleaned up"]
        assert cancellation.is_stopped

    asyncio.run(story())


def test_cancel_interrupts_whatever_the_mark_says():
    async def story():
        mark = StopMark(None)
        cancellation = Cancellation(3, mark)
        assert await interrupted(cancellation, cancellation.cancel) == ["began", "cleaned up"]
        assert cancellation.is_stopped
        assert not mark.is_stopped(3)

    asyncio.run(story())


def test_what_was_stopped_before_does_not_begin():
    async def story():
        mark = StopMark(None)
        mark.raise_to(3)
        work = Work()
        with pytest.raises(Interrupted):
            await Cancellation(3, mark).waiting_for(work.run())
        assert work.notes == []

    asyncio.run(story())


def test_the_stop_of_another_request_interrupts_nothing():
    async def story():
        mark = StopMark(None)
        cancellation = Cancellation(3, mark)
        mark.raise_to(2)
        cancellation.interrupt()
        future = asyncio.get_running_loop().create_future()
        waiting = asyncio.ensure_future(cancellation.waiting_for(future))
        await asyncio.sleep(0)
        cancellation.interrupt()
        future.set_result("done")
        assert await waiting == "done"
        assert not cancellation.is_stopped

    asyncio.run(story())


def test_a_failure_of_the_work_passes_and_nothing_is_waited_for_afterwards():
    async def story():
        async def fail():
            raise ValueError("its own")

        cancellation = Cancellation(3, StopMark(None))
        with pytest.raises(ValueError, match="its own"):
            await cancellation.waiting_for(fail())
        cancellation.cancel()
        assert cancellation.is_stopped

    asyncio.run(story())


def test_the_shared_mark_stops_a_request_without_a_message():
    shared = Shared()
    cancellation = Cancellation(3, StopMark(shared))
    assert not cancellation.is_stopped
    shared.value = 3
    assert cancellation.is_stopped
