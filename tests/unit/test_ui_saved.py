"""What is kept of a chat, and what comes back."""

import json

import pytest

from clutch.engine.session_store import check_name
from ui import saved
from ui.chat import Chat
from ui.conversation import Message
from ui.exchange import Exchange

MOMENT = (2026, 3, 9, 8, 5)


def cut_chat():
    chat = Chat(0, "ready")
    chat.conversation.add(Message("system", "be brief"))
    chat.conversation.add(Message("user", "raw", is_raw=True))
    question = chat.conversation.add(Message("user", "why \U0001f600?"))
    answer = chat.conversation.add(Message("assistant", "because"))
    answer.end, answer.n_left_out = "abort", 1
    chat.answered = Exchange(4, question, answer, {"seed": 7, "top_k": 3}, 0, 2)
    return chat


def event(page, end="abort", output_tokens=2):
    return {"page": page, "end": end, "output_tokens": output_tokens, "kv_length": 33}


def through_the_engine(page):
    return json.loads(json.dumps(page))


def test_a_name_has_the_moment_and_the_title():
    assert saved.name_for("Why is the sky blue?", MOMENT, []) == "2026-03-09 08:05 Why is the sky blue?"


@pytest.mark.parametrize("title", ["", "x", "x" * 200, "字" * 200])
def test_names_are_short_enough_and_not_taken(title):
    names = []
    for _ in range(12):
        names.append(saved.name_for(title, MOMENT, names))
    assert len(set(names)) == 12
    for name in names:
        check_name(name)


def test_a_chat_comes_back_as_it_was():
    chat = cut_chat()
    back = Chat(5, "restoring")
    saved.restore(back, event(through_the_engine(saved.page_of(chat))))
    back.enter("ready")
    fields = ("role", "text", "is_raw", "end", "n_left_out")
    assert [[getattr(message, name) for name in fields] for message in back.conversation.messages] == [
        [getattr(message, name) for name in fields] for message in chat.conversation.messages
    ]
    assert back.can_continue and back.title == "raw" and back.numbers == {"kv_length": 33}
    assert back.answered.n_tokens == 2
    # The same settings are sent again only where the visitor has changed them.
    assert back.answered.changes({"seed": 7, "top_k": 3}) == {}


@pytest.mark.parametrize("end", ["", "stop", "context_full"])
def test_what_is_complete_is_not_continued(end):
    back = Chat(5, "ready")
    saved.restore(back, event(saved.page_of(cut_chat()), end=end))
    assert not back.can_continue and len(back.conversation.messages) == 4


@pytest.mark.parametrize(
    "page",
    [
        {},
        {"messages": None},
        {"messages": {"role": "user"}},
        {"messages": [None, 7, "x", {}, {"role": "user"}, {"role": "tool", "text": "x"}, {"role": [], "text": "x"}]},
    ],
)
def test_a_page_that_is_not_ours_brings_nothing(page):
    back = Chat(5, "ready")
    saved.restore(back, event(page))
    assert back.is_empty and not back.can_continue


def test_odd_parts_of_a_message_are_left_out():
    page = {"messages": [{"role": "user", "text": "q", "is_raw": 1, "end": 5, "n_left_out": "many"}], "asked": []}
    back = Chat(5, "ready")
    saved.restore(back, event(page))
    (message,) = back.conversation.messages
    assert (message.text, message.is_raw, message.end, message.n_left_out) == ("q", False, "", 0)


def test_an_edited_chat_does_not_go_on_with_an_answer_that_it_no_longer_shows():
    chat = cut_chat()
    chat.answered = None
    back = Chat(5, "ready")
    saved.restore(back, event(saved.page_of(chat)))
    assert not back.can_continue
