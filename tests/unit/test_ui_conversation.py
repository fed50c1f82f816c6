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
    exchange = Exchange(1, Message("user", "q"), answer, started_ms=1000)
    exchange.start(60)
    assert exchange.numbers(1200) == {"kv_length": 60} and not exchange.has_text
    exchange.append("Hel", 2, 1500)
    assert exchange.numbers(1500) == {"kv_length": 62, "ttft_ms": 500} and exchange.has_text
    exchange.append("lo", 10, 1700)
    assert exchange.numbers(1700) == {"kv_length": 72, "ttft_ms": 500, "tokens_per_s": 50.0}
    assert answer.text == "Hello"
