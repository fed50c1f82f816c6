"""Several chats: their numbers, what each keeps for itself, and which events come too late."""

import pytest

from clutch.protocol import MAX_SESSIONS
from ui.chat import Chat
from ui.chats import Chats
from ui.conversation import Message
from ui.epochs import is_past
from ui.exchange import Exchange


def chats_of(*numbers):
    chats = Chats(Chat(numbers[0], "ready"))
    for number in numbers[1:]:
        chats.add(Chat(number, "ready"))
    return chats


def asked(chat, question, answer="", end=""):
    messages = [chat.conversation.add(Message("user", question)), chat.conversation.add(Message("assistant", answer))]
    messages[1].end = end
    return messages


def test_a_new_chat_gets_the_lowest_number_that_is_free_in_the_engine_too():
    chats = chats_of(0, 1, 3)
    assert chats.free_number == 2
    chats.remove(chats.find(1))
    chats.await_closed(1)
    assert chats.free_number == 2
    assert chats.note_closed(1) and not chats.note_closed(1)
    assert chats.free_number == 1
    assert chats_of(*range(MAX_SESSIONS)).free_number is None


def test_number_0_is_free_again_once_it_is_closed():
    chats = chats_of(0, 1)
    chats.remove(chats.find(0))
    chats.await_closed(0)
    assert chats.free_number == 2
    chats.forget_closing()
    assert chats.free_number == 0


def test_the_chat_beside_comes_into_view_when_the_one_in_view_goes():
    chats = chats_of(0, 1, 2)
    assert chats.in_view.number == 2
    chats.remove(chats.find(2))
    assert chats.in_view.number == 1
    chats.in_view = chats.find(0)
    chats.remove(chats.find(0))
    assert chats.in_view.number == 1 and chats.numbers == [1]


def test_a_chat_out_of_view_goes_without_a_change_of_view():
    chats = chats_of(0, 1, 2)
    chats.remove(chats.find(0))
    assert chats.in_view.number == 2 and len(chats) == 2 and chats.find(0) is None and chats.find(None) is None


def test_the_arrow_keys_go_around_the_ends():
    chats = chats_of(0, 4, 2)
    assert chats.wished("next").number == 0
    assert chats.wished("previous").number == 4
    assert chats.wished("first").number == 0
    chats.show(chats.find(0))
    assert chats.wished("previous").number == 2
    assert chats.wished("next").number == 4
    assert chats.wished("last").number == 2


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("Why?", "Why?"),
        ("  two\nlines   here ", "two lines here"),
        ("word " * 40, ("word " * 11).strip() + "…"),
        ("字" * 80, "字" * 55 + "…"),
    ],
)
def test_the_title_is_the_beginning_of_the_first_question(question, title):
    chat = Chat(0, "ready")
    chat.conversation.add(Message("system", "be brief"))
    assert chat.title == "" and not chat.is_empty
    chat.conversation.add(Message("user", question))
    chat.conversation.add(Message("user", "another"))
    assert chat.title == title


def test_a_fork_goes_its_own_way():
    chat = Chat(0, "ready")
    question, answer = asked(chat, "q", "an answer", "abort")
    answer.n_left_out = 2
    chat.answered = Exchange(7, question, answer, {"seed": 1}, 0, 5)
    chat.end = "abort"
    fork = chat.fork(3)
    assert (fork.number, fork.state, fork.title, fork.end) == (3, "opening", "q", "abort")
    assert not fork.can_continue
    fork.enter("ready")
    assert fork.can_continue and fork.answered.n_tokens == 5 and fork.answered.changes({"seed": 1}) == {}
    assert fork.conversation.n_left_out == 2
    fork.answered.answer.text += ", longer"
    fork.answered.answer.end = "stop"
    assert fork.conversation.messages[-1].text == "an answer, longer"
    assert (answer.text, chat.can_continue) == ("an answer", True)


def test_what_was_in_progress_ends_with_its_state():
    chat = Chat(0, "loading")
    chat.progress = {"phase": "compiling"}
    chat.enter("loading")
    assert chat.progress
    chat.enter("ready")
    assert chat.progress is None


def test_a_request_begins_at_once_and_reset_forgets_it():
    chat = Chat(0, "ready")
    chat.numbers, chat.end = {"kv_length": 4}, "stop"
    question, answer = asked(chat, "q")
    chat.begin(Exchange(1, question, answer, {}, 0))
    assert (chat.state, chat.numbers, chat.end, chat.is_writing) == ("generating", {}, "", False)
    chat.exchange.append("x", 1, 10)
    assert chat.is_writing
    chat.forget()
    assert chat.is_empty and chat.exchange is None and chat.answered is None


def event(kind, session, epoch, **fields):
    return {"kind": kind, "session": session, "epoch": epoch, **fields}


def test_an_event_is_past_only_for_its_own_session():
    epochs = [0, 2, 1]
    assert is_past(event("delta", 1, 1, request_id=5), epochs, load_id=9)
    assert not is_past(event("delta", 1, 2, request_id=5), epochs, load_id=9)
    assert not is_past(event("delta", 2, 1, request_id=5), epochs, load_id=9)
    assert is_past(event("state", 1, 1, state="ready"), epochs, load_id=9)


def test_some_events_are_never_past():
    epochs = [3] * MAX_SESSIONS
    assert not is_past(event("state", 1, 0, state="lost"), epochs, load_id=9)
    assert not is_past(event("finished", 0, 0, request_id=9), epochs, load_id=9)
    assert not is_past(event("error", None, 0, request_id=4), epochs, load_id=9)
    assert not is_past(event("error", 2, 0, request_id=None), epochs, load_id=9)
    assert not is_past(event("notice", None, 0, request_id=None), epochs, load_id=9)
    assert not is_past({"kind": "closed", "session": 1}, epochs, load_id=9)
    assert not is_past({"kind": "heartbeat"}, epochs, load_id=9)
    assert is_past(event("error", 2, 0, request_id=4), epochs, load_id=9)
