import json

import pytest

from clutch.errors import RequestError
from ui.conversation import Conversation, Message, opening
from ui.exchange import Exchange


def test_wire_has_the_chat_without_raw_messages():
    chat = Conversation()
    chat.add(Message("user", "hello"))
    chat.add(Message("assistant", ""))
    chat.add(Message("user", "raw", is_raw=True))
    assert chat.wire() == [{"role": "user", "content": "hello"}, {"role": "assistant", "content": ""}]


def test_drop_last_and_clear():
    chat = Conversation()
    for text in "abc":
        chat.add(Message("user", text))
    chat.drop_last(2)
    assert [message.text for message in chat.messages] == ["a"]
    chat.drop_last(0)
    assert len(chat.messages) == 1
    chat.clear()
    assert chat.messages == []


def test_a_copy_is_about_other_messages():
    chat = Conversation()
    message = chat.add(Message("user", "q", is_raw=True))
    message.end, message.n_left_out = "abort", 4
    chat.add(Message("user", "r"))
    copy = chat.copy()
    copy.messages[0].text = "changed"
    copy.drop_last(1)
    assert (message.text, len(chat.messages)) == ("q", 2)
    assert (copy.messages[0].is_raw, copy.messages[0].end, copy.n_left_out) == (True, "abort", 4)
    assert Conversation().n_left_out == 0


@pytest.mark.parametrize(
    ("roles", "index"), [("ua", 0), ("uaua", 2), ("uau", None), ("aa", None), ("a", None), ("", None)]
)
def test_last_question_is_one_that_only_its_answer_follows(roles, index):
    chat = Conversation()
    for role in roles:
        chat.add(Message({"u": "user", "a": "assistant"}[role], ""))
    assert chat.last_question is (None if index is None else chat.messages[index])


def roles(messages):
    return [(message.role, message.text) for message in messages]


def test_opening_puts_a_last_user_message_into_the_prompt_box():
    items = [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]
    messages, prompt = opening(json.dumps(items))
    assert (roles(messages), prompt) == ([("system", "s")], "q")


def test_opening_keeps_a_last_assistant_message():
    messages, prompt = opening('[{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]')
    assert (roles(messages), prompt) == ([("user", "q"), ("assistant", "a")], "")
    assert opening("[]") == ([], "")


@pytest.mark.parametrize(
    "text", ["", "{", "{}", "7", "[7]", '[{"role": "tool", "content": "x"}]', '[{"role": "user"}]']
)
def test_opening_refuses_other_things(text):
    with pytest.raises(RequestError) as caught:
        opening(text)
    assert caught.value.code == "E600" and caught.value.hint


def test_exchange_counts_the_first_piece_to_the_prompt():
    answer = Message("assistant", "")
    exchange = Exchange(1, Message("user", "q"), answer, {}, started_ms=1000)
    assert exchange.prompt_numbers() == {}
    exchange.start(60, 48, "")
    prompt = {"n_new": 12, "n_reused": 48}
    assert exchange.prompt_numbers() == prompt
    assert exchange.numbers(1200) == {**prompt, "kv_length": 60} and not exchange.is_writing
    exchange.append("Hel", 2, 1500)
    assert exchange.numbers(1500) == {**prompt, "kv_length": 62, "ttft_ms": 500} and exchange.is_writing
    exchange.append("lo", 10, 1700)
    assert exchange.numbers(1700) == {**prompt, "kv_length": 72, "ttft_ms": 500, "tokens_per_s": 50.0}
    assert answer.text == "Hello"


def test_a_prompt_that_was_shortened_counts_as_it_is():
    exchange = Exchange(1, Message("user", "q"), Message("assistant", ""), {}, started_ms=0)
    exchange.start(200, 80, "")
    exchange.shorten(60)
    assert exchange.prompt_numbers() == {"n_new": 0, "n_reused": 60}
    assert exchange.numbers(10)["kv_length"] == 60


def test_a_continued_answer_starts_from_what_the_engine_has_and_counts_on():
    answer = Message("assistant", "Hel\ufffd")
    exchange = Exchange(2, Message("user", "q"), answer, {}, started_ms=1000, n_tokens=3)
    # The engine reuses the prompt and the answer so far; only the prompt is counted.
    exchange.start(60, 62, "Hel")
    prompt = {"n_new": 0, "n_reused": 60}
    assert answer.text == "Hel" and not exchange.is_writing
    assert exchange.numbers(1100) == {**prompt, "kv_length": 63}
    exchange.append("l", 1, 1200)
    exchange.append("o", 4, 1400)
    assert exchange.numbers(1400) == {**prompt, "kv_length": 68, "ttft_ms": 200, "tokens_per_s": 20.0}
    exchange.finish(9, "stop")
    assert (answer.text, answer.end, exchange.n_tokens) == ("Hello", "stop", 9)


def test_continue_sends_only_what_was_changed_since():
    exchange = Exchange(1, Message("user", "q"), Message("assistant", ""), {"top_k": 4, "seed": 1}, started_ms=0)
    assert exchange.changes({"top_k": 4, "seed": 1}) == {}
    # An empty seed field means any seed, and the answer has one already.
    assert exchange.changes({"top_k": 4}) == {}
    assert exchange.changes({"top_k": 5, "seed": 1}) == {"top_k": 5}
