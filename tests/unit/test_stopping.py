"""Each reason to end, and which one wins."""

import pytest

from clutch.engine.stopping import Stopping

STOPPING = Stopping(end_ids=frozenset({2, 7}), max_tokens=5, context_length=20)


@pytest.mark.parametrize(
    ("token_id", "n_generated", "n_positions", "expected"),
    [
        (1, 1, 11, None),
        (1, 4, 19, None),
        (2, 1, 11, "stop"),
        (7, 1, 11, "stop"),
        (1, 5, 15, "length"),
        (1, 6, 15, "length"),
        (1, 1, 20, "context_full"),
        (1, 1, 21, "context_full"),
        (2, 5, 20, "stop"),
        (1, 5, 20, "length"),
    ],
)
def test_reason(token_id, n_generated, n_positions, expected):
    assert STOPPING.check(token_id, n_generated, n_positions) == expected


def test_a_model_without_an_end_still_ends():
    endless = Stopping(end_ids=frozenset(), max_tokens=3, context_length=100)
    assert [endless.check(2, n, n + 10) for n in (1, 2, 3)] == [None, None, "length"]
