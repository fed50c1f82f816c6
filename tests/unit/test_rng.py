"""Threefry's published answers, and uniforms that f32 can hold."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clutch.sampling import rng
from clutch.sampling.rng import threefry2x32, uniform

ONES = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [  # Random123, tests/kat_vectors: threefry2x32 20
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((ONES, ONES), (ONES, ONES), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_published_answers(key, counter, expected):
    assert threefry2x32(*key, *counter) == expected


def test_seed_words_are_the_key_and_position_and_index_the_counter():
    word, _ = threefry2x32(0x89ABCDEF, 0x01234567, 11, 22)
    assert uniform(0x0123456789ABCDEF, 11, 22) == ((word >> 9) + 0.5) / 2**23


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_uniform_is_inside_the_open_interval_and_exact_in_f32(seed, position, index):
    value = uniform(seed, position, index)
    assert 0 < value < 1
    assert struct.unpack("f", struct.pack("f", value)) == (value,)


@pytest.mark.parametrize(("word", "expected"), [(0, 2**-24), (0xFFFFFFFF, 1 - 2**-24)])
def test_the_ends_are_exact_in_f32(monkeypatch, word, expected):
    monkeypatch.setattr(rng, "threefry2x32", lambda *_: (word, 0))
    assert uniform(0, 0, 0) == expected
    assert struct.unpack("f", struct.pack("f", expected)) == (expected,)


def test_uniforms_fill_the_interval_evenly():
    counts = [0] * 16
    for index in range(16_000):
        counts[int(uniform(42, 7, index) * 16)] += 1
    assert sum((count - 1000) ** 2 / 1000 for count in counts) < 44.3  # chi-square, 15 degrees, p = 0.0001


def test_neighbours_share_nothing():
    draws = {uniform(seed, position, index) for seed in range(8) for position in range(8) for index in range(8)}
    assert len(draws) == 512
