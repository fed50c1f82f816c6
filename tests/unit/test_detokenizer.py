"""Deltas are whole characters and join to the whole text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clutch.text.detokenizer import Detokenizer, decode_all
from clutch.text.vocabulary import BYTE_OF, Vocabulary
from tests.support.vocabularies import tokenizer_of

# Ids 0..255 are the single bytes, so that every byte string can be written, broken ones included.
BYTES = Vocabulary.from_metadata(
    {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": [
            *sorted(BYTE_OF, key=BYTE_OF.__getitem__),
            "<c>",
            "<think>",
            "[PAD]",
            "<unk>",
        ],
        "tokenizer.ggml.token_type": [1] * 256 + [3, 4, 5, 2],
        "tokenizer.ggml.merges": [],
    }
)
CONTROL, THINK, UNUSED, UNKNOWN = 256, 257, 258, 259


def stream(vocabulary, token_ids):
    detokenizer = Detokenizer(vocabulary)
    return [*map(detokenizer.push, token_ids), detokenizer.finish()]


@given(st.binary(max_size=60))
def test_deltas_join_to_the_decoding_of_all_bytes(data):
    assert "".join(stream(BYTES, data)) == decode_all(BYTES, data) == data.decode("utf-8", "replace")


@given(st.text(max_size=30))
def test_no_delta_shows_part_of_a_character(text):
    deltas = [delta for delta in stream(BYTES, text.encode()) if delta]
    assert deltas == list(text)


@given(st.lists(st.integers(0, 49151), max_size=40))
def test_random_tokens_of_a_real_vocabulary(token_ids):
    vocabulary = tokenizer_of("smollm2").vocabulary
    assert "".join(stream(vocabulary, token_ids)) == decode_all(vocabulary, token_ids)


def test_a_character_appears_with_its_last_byte():
    assert stream(BYTES, "é😀".encode()) == ["", "é", "", "", "", "😀", ""]


def test_a_character_that_never_completes_becomes_a_replacement():
    assert stream(BYTES, b"\xf0\x9f\x98") == ["", "", "", "\ufffd"]


def test_an_invalid_byte_is_shown_at_once():
    assert stream(BYTES, b"\xc3A") == ["", "\ufffdA", ""]


@pytest.mark.parametrize(("token_id", "shown"), [(CONTROL, ""), (THINK, "<think>"), (UNUSED, ""), (UNKNOWN, "")])
def test_what_special_tokens_show(token_id, shown):
    assert stream(BYTES, [0x41, token_id, 0x42]) == ["A", shown, "B", ""]


def test_a_control_token_does_not_cut_a_character():
    first, second = "é".encode()
    assert "".join(stream(BYTES, [first, CONTROL, second])) == decode_all(BYTES, [first, CONTROL, second]) == "é"


def test_text_survives_the_way_through_tokens():
    tokenizer = tokenizer_of("smollm2")
    text = "naïve 日本語 🧑‍🚀 «ok»\n\t  x"
    assert decode_all(tokenizer.vocabulary, tokenizer.encode(text)) == text
