"""A text that is encoded piece by piece has the ids of the whole, and what is known is not encoded again."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clutch.text import piecewise
from clutch.text.piecewise import PIECE_CHARS, PiecewiseEncoder, pieces
from tests.support.vocabularies import tokenizer_of

# What pre-tokenizers and Unicode normalisation look at, and what they might join across a cut.
WORDS = ["a", "Z", "the", "Don't", "'s", "'S", "7", "12", ".", "...", "-", "<", "é", "ß", "你好", "🙂"]
SPACES = [" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u2028"]
JOINED = ["e\u0301", "\u0301", "\u0338", "\u212a", "\u017f", "\u1100\u1161", "\u200d"]
PARTS = st.sampled_from([*WORDS, *SPACES, *JOINED])


def known(calls):
    """Return an encoder of one id a character, which notes what it is asked."""

    def encode(text):
        calls.append(text)
        return [ord(character) for character in text]

    return PiecewiseEncoder(encode)


@pytest.mark.parametrize("name", ["smollm2", "qwen25", "dsr1qwen"])
def test_ids_are_those_of_the_whole(name, monkeypatch):
    monkeypatch.setattr(piecewise, "PIECE_CHARS", 1)
    tokenizer = tokenizer_of(name)
    whole = tokenizer._encode_plain._encode

    @given(st.lists(PARTS, min_size=1, max_size=30).map("".join))
    @settings(max_examples=400, deadline=None)
    def check(text):
        assert [i for piece in pieces(text) for i in whole(piece)] == whole(text)

    check()


@given(st.text("ab .\n", max_size=40), st.text("ab .\n", max_size=20))
def test_pieces_make_the_text_and_a_beginning_has_the_same(text, more):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(piecewise, "PIECE_CHARS", 3)
        found = list(pieces(text))
        assert "".join(found) == text
        assert all(len(piece) >= 3 and re.match("[a-z]", piece[-1]) for piece in found[:-1])
        assert list(pieces(text + more))[: len(found) - 1] == found[:-1]


def test_what_was_said_before_is_encoded_once():
    calls = []
    encode = known(calls)
    text = " ".join(f"words {i}" for i in range(PIECE_CHARS))
    assert encode(text) == list(map(ord, text))
    n_first = len(calls)
    assert n_first == len(list(pieces(text))) > 5
    assert encode(text + "and more") == list(map(ord, text + "and more"))
    assert len(calls) == n_first + 1
    encode.forget()
    encode(text)
    assert len(calls) == 2 * n_first + 1


def test_a_text_without_a_place_to_cut_goes_through_in_one():
    calls = []
    encode = known(calls)
    long = "1234567 " * PIECE_CHARS
    assert encode(long) == encode(long) == list(map(ord, long))
    # Too long to be remembered.
    assert calls == [long, long]
