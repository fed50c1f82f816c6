"""The stop mark: a Stop that is early, twice or late is neither lost nor leaks into the next request."""

from hypothesis import given
from hypothesis import strategies as st

from clutch.engine.control import StopMark


class Shared:
    def __init__(self, value=0):
        self.value = value
        self.reads = 0

    def read(self):
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
