"""The states: every pair of them against the table, and what the two guarded entries answer."""

import itertools

import pytest

from clutch.engine.lifecycle import TRANSITIONS, EngineState, Lifecycle
from clutch.errors import BusyError, InternalError, NotReadyError

S = EngineState
# Written out once more, so that an edit of the table is a decision: the ways out of each state.
EXPECTED = {
    S.EMPTY: {S.LOADING},
    S.LOADING: {S.READY, S.EMPTY, S.LOST},
    S.READY: {S.GENERATING, S.RESETTING, S.EMPTY, S.LOST},
    S.GENERATING: {S.READY, S.LOST},
    S.RESETTING: {S.READY},
    S.LOST: {S.LOADING, S.READY, S.GENERATING, S.EMPTY},
}
WAY_TO = {
    S.EMPTY: [],
    S.LOADING: [S.LOADING],
    S.READY: [S.LOADING, S.READY],
    S.GENERATING: [S.LOADING, S.READY, S.GENERATING],
    S.RESETTING: [S.LOADING, S.READY, S.RESETTING],
    S.LOST: [S.LOADING, S.READY, S.GENERATING, S.LOST],
}


def lifecycle_in(state):
    heard = []
    lifecycle = Lifecycle(S.EMPTY, heard.append)
    for step in WAY_TO[state]:
        lifecycle.to(step)
    assert heard == WAY_TO[state]
    heard.clear()
    return lifecycle, heard


def test_the_table_is_whole():
    assert set(TRANSITIONS) == set(S) == set(EXPECTED)


@pytest.mark.parametrize(("source", "target"), list(itertools.product(S, S)))
def test_every_pair(source, target):
    lifecycle, heard = lifecycle_in(source)
    if target in EXPECTED[source]:
        lifecycle.to(target)
        assert (lifecycle.state, heard) == (target, [target])
    else:
        with pytest.raises(InternalError) as refused:
            lifecycle.to(target)
        assert refused.value.data == {"state": source, "target": target}
        assert (lifecycle.state, heard) == (source, [])


@pytest.mark.parametrize("state", list(S))
def test_loading_begins_only_when_empty(state):
    lifecycle, heard = lifecycle_in(state)
    if state is S.EMPTY:
        lifecycle.begin_loading()
        assert heard == [S.LOADING]
        return
    with pytest.raises(BusyError) as refused:
        lifecycle.begin_loading()
    assert (refused.value.code, refused.value.data) == ("E601", {"state": str(state)})
    assert (lifecycle.state, heard) == (state, [])


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (S.EMPTY, "E602"),
        (S.LOST, "E601"),
        (S.LOADING, "E601"),
        (S.GENERATING, "E601"),
        (S.RESETTING, "E601"),
        (S.READY, None),
    ],
)
def test_generating_begins_only_when_ready(state, code):
    lifecycle, heard = lifecycle_in(state)
    if code is None:
        lifecycle.begin_generating()
        assert heard == [S.GENERATING]
        return
    with pytest.raises((BusyError, NotReadyError)) as refused:
        lifecycle.begin_generating()
    assert refused.value.code == code
    assert (lifecycle.state, heard) == (state, [])
