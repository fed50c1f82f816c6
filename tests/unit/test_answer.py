"""The answer as it grows: whole characters, one delta a frame, and deltas that add up."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clutch.engine.answer import FRAME_SECONDS, Answer
from clutch.errors import InternalError
from clutch.text.vocabulary import BYTE_OF, Vocabulary

# Ids 0..255 are the single bytes, 256 is a control token.
BYTES = Vocabulary.from_metadata(
    {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": [*sorted(BYTE_OF, key=BYTE_OF.__getitem__), "<end>"],
        "tokenizer.ggml.token_type": [1] * 256 + [3],
        "tokenizer.ggml.merges": [],
    }
)
END = 256


class Watched:
    """An answer with its deltas and its clock."""

    def __init__(self):
        self.deltas = []
        self.sent_at = []
        self.now = 50.0
        self.answer = Answer(BYTES, self._send, lambda: self.now)

    def _send(self, seq_no, text, token_ids):
        self.deltas.append((seq_no, text, list(token_ids)))
        self.sent_at.append(self.now)

    def push_all(self, token_ids, seconds):
        for token_id in token_ids:
            self.answer.push(token_id)
            self.now += seconds


@given(st.lists(st.tuples(st.integers(0, END), st.floats(0, 2 * FRAME_SECONDS)), max_size=60))
def test_deltas_add_up(tokens):
    watched = Watched()
    for token_id, seconds in tokens:
        watched.push_all([token_id], seconds)
    n_streamed = len(watched.deltas)
    token_ids = [token_id for token_id, _ in tokens]
    text = watched.answer.finish()
    assert text == bytes(i for i in token_ids if i != END).decode("utf-8", "replace")
    assert "".join(text for _, text, _ in watched.deltas) == text
    assert [i for _, _, ids in watched.deltas for i in ids] == token_ids == watched.answer.token_ids
    assert [seq_no for seq_no, _, _ in watched.deltas] == list(range(len(watched.deltas)))
    sent_at = watched.sent_at[:n_streamed]
    assert all(later - sooner >= FRAME_SECONDS * 0.999 for sooner, later in pairwise(sent_at))


def test_the_first_token_is_sent_at_once_and_the_rest_of_its_frame_together():
    watched = Watched()
    watched.push_all(b"abcd", FRAME_SECONDS / 3.5)
    watched.push_all(b"e", 0)
    assert watched.deltas == [(0, "a", [97]), (1, "bcde", [98, 99, 100, 101])]


def test_slow_tokens_have_a_delta_each():
    watched = Watched()
    watched.push_all(b"abc", 1.0)
    assert [text for _, text, _ in watched.deltas] == ["a", "b", "c"]


def test_a_character_in_pieces_is_shown_once_it_is_whole():
    watched = Watched()
    watched.push_all("😀".encode(), 1.0)
    assert [text for _, text, _ in watched.deltas] == ["", "", "", "😀"]


def test_what_was_held_back_comes_at_the_end():
    watched = Watched()
    watched.push_all("é".encode()[:1], 1.0)
    assert watched.answer.finish() == "\ufffd"
    assert watched.deltas == [(0, "", [0xC3]), (1, "\ufffd", [])]


def test_a_finish_with_nothing_left_sends_nothing():
    watched = Watched()
    watched.push_all(b"a", 1.0)
    assert watched.answer.finish() == "a"
    assert len(watched.deltas) == 1
    assert Watched().answer.finish() == ""


def test_deltas_that_do_not_add_up_are_a_bug_of_ours():
    watched = Watched()
    watched.push_all(b"ab", 1.0)
    watched.answer.token_ids.pop()
    with pytest.raises(InternalError):
        watched.answer.finish()


def test_cut_drops_what_was_not_sent_and_the_rest_goes_on():
    sent = []
    clock = iter([0.0, 0.001, 0.002, 1.0, 2.0])
    answer = Answer(BYTES, lambda _, text, ids: sent.append((text, ids)), lambda: next(clock))
    ids = list(b"abcde")
    for token_id in ids[:3]:
        answer.push(token_id)
    answer.cut()
    assert answer.token_ids == ids[:1]
    assert answer.finish() == "a"
    for token_id in ids[3:]:
        answer.push(token_id)
    assert answer.finish() == "ade"
    assert sent == [("a", ids[:1]), ("d", ids[3:4]), ("e", ids[4:])]
