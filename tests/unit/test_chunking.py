"""The size of a prefill chunk: from how long the last ones took, never beyond the room, never a part of a tile."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clutch.engine.chunking import ChunkSizer

TILE = 8


def sizes(ms_a_tile, n_chunks, *, most_tokens=128, target_ms=25):
    """Return the sizes of the chunks on a GPU that takes `ms_a_tile` for 8 tokens."""
    sizer, found = ChunkSizer(most_tokens, target_ms), []
    for _ in range(n_chunks):
        found.append(sizer.tokens)
        sizer.observe(sizer.tokens, sizer.tokens // TILE * ms_a_tile)
    return found


def test_a_fast_gpu_gets_twice_as_many_each_time_up_to_the_room():
    assert sizes(0.1, 4) == [32, 64, 128, 128]


def test_a_slow_gpu_gets_one_tile():
    assert sizes(26, 3) == [32, 8, 8]
    assert sizes(1e6, 3) == [32, 8, 8]


@pytest.mark.parametrize(("ms_a_tile", "tokens"), [(25, 8), (12.5, 16), (10, 16), (5, 32), (1, 128)])
def test_it_settles_at_what_fits_the_target(ms_a_tile, tokens):
    assert sizes(ms_a_tile, 9)[-3:] == [tokens] * 3


def test_a_gpu_that_becomes_slow_gets_less_at_once():
    sizer = ChunkSizer(128, 25)
    for _ in range(5):
        sizer.observe(sizer.tokens, 1)
    assert sizer.tokens == 128
    sizer.observe(128, 250)
    assert sizer.tokens == 8


def test_a_last_chunk_that_is_shorter_says_nothing():
    sizer = ChunkSizer(128, 25)
    sizer.observe(32, 1)
    sizer.observe(3, 1e6)
    assert sizer.tokens == 64


def test_a_gpu_whose_steps_cost_the_same_whatever_their_size_gets_large_ones():
    sizer = ChunkSizer(128, 25)
    for _ in range(5):
        sizer.observe(sizer.tokens, 15)
    assert sizer.tokens == 128


@given(
    st.integers(1, 32).map(lambda tiles: tiles * TILE),
    st.integers(1, 2000),
    st.lists(st.tuples(st.integers(1, 256), st.floats(0, 1e9)), max_size=20),
)
def test_always_whole_tiles_within_the_room(most_tokens, target_ms, observed):
    sizer = ChunkSizer(most_tokens, target_ms)
    for n_tokens, elapsed_ms in observed:
        sizer.observe(min(n_tokens, sizer.tokens), elapsed_ms)
        assert TILE <= sizer.tokens <= most_tokens
        assert sizer.tokens % TILE == 0
