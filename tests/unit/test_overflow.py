"""What is left out of a chat that outgrows the context: whole turns, the oldest first, never the system prompt."""

import pytest

from clutch.engine.overflow import Chat
from clutch.engine.prompt import room_for


def encode(messages):
    return [token for message in messages for token in message["content"].encode()]


def chat_of(text):
    roles = {"s": "system", "u": "user", "a": "assistant"}
    return Chat([{"role": roles[word[0]], "content": word} for word in text.split()], encode)


def text_of(chat):
    return " ".join(message["content"] for message in chat.messages)


@pytest.mark.parametrize(
    ("text", "expected", "n_dropped"),
    [
        ("s u1 a1 u2 a2 u3", "s u2 a2 u3", 2),
        ("s u2 a2 u3", "s u3", 2),
        ("u1 a1 u2", "u2", 2),
        ("s1 s2 u1 u2 a2 u3", "s1 s2 u2 a2 u3", 1),
        # An answer that comes first is a turn without a question.
        ("a0 u1", "u1", 1),
    ],
)
def test_the_oldest_turn_goes_whole(text, expected, n_dropped):
    shorter = chat_of(text).without_oldest_turn()
    assert (text_of(shorter), shorter.n_dropped) == (expected, n_dropped)


@pytest.mark.parametrize("text", ["u1", "s u1", "s", "s1 s2", "s u1 a1"])
def test_the_last_question_stays(text):
    assert chat_of(text).without_oldest_turn() is None


@pytest.mark.parametrize(
    ("n_tokens", "expected", "n_dropped"),
    [
        (99, "s u1 a1 u2 a2 u3", 0),
        (11, "s u1 a1 u2 a2 u3", 0),
        (10, "s u2 a2 u3", 2),
        (7, "s u2 a2 u3", 2),
        (6, "s u3", 4),
    ],
)
def test_no_more_is_left_out_than_it_takes(n_tokens, expected, n_dropped):
    chat, token_ids = chat_of("s u1 a1 u2 a2 u3").within(n_tokens)
    assert (text_of(chat), chat.n_dropped) == (expected, n_dropped)
    assert token_ids == encode(chat.messages)


def test_a_question_that_is_too_long_alone_is_not_cut():
    chat, token_ids = chat_of("s u1 a1 u-very-long").within(4)
    assert (text_of(chat), len(token_ids)) == ("s u-very-long", 12)


@pytest.mark.parametrize(
    ("n_tokens", "context", "room"), [(5, 64, 5), (500, 64, 16), (0, 64, 1), (-3, 64, 1), (9, 2, 1)]
)
def test_the_room_that_is_made(n_tokens, context, room):
    assert room_for(n_tokens, context) == room
