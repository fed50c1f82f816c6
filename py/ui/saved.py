"""How a chat is kept: its name, and what the page wants back with it. Imports on CPython for tests."""

from ui.conversation import Message
from ui.exchange import Exchange

# The engine's limit, see `clutch/engine/session_store.py`.
_NAME_CHARS = 80


def name_for(title, moment, taken):
    """Return a name that is not taken.

    Args:
        title: of the chat.
        moment: (year, month, day, hour, minute).
        taken: the names in use.
    """
    year, month, day, hour, minute = moment
    stem = f"{year:04d}-{month:02d}-{day:02d} {hour:02d}:{minute:02d} {title}"[:_NAME_CHARS]
    name = stem
    count = 1
    while name in taken:
        count += 1
        mark = f" ({count})"
        name = stem[: _NAME_CHARS - len(mark)] + mark
    return name


def page_of(chat):
    """Return the `page` of a `save_session`: the transcript, and the params of the answer that can go on, if any."""
    fields = ("role", "text", "is_raw", "end", "n_left_out")
    messages = [{name: getattr(message, name) for name in fields} for message in chat.conversation.messages]
    return {"messages": messages, "asked": chat.answered.asked if chat.answered else None}


def restore(chat, event):
    """Fill `chat` with what a `restored` event brings; parts that are not ours are left out."""
    chat.forget()
    items = event["page"].get("messages", [])
    for item in items if isinstance(items, list) else []:
        message = _message(item)
        if message is not None:
            chat.conversation.add(message)
    chat.numbers = {"kv_length": event["kv_length"]}
    question = chat.conversation.last_question
    asked = event["page"].get("asked")
    # Without what was asked, the last answer on show is not the engine's last: it was edited away, say.
    if event["end"] and question is not None and isinstance(asked, dict):
        answer = chat.conversation.messages[-1]
        answer.end = event["end"]
        chat.answered = Exchange(None, question, answer, asked, 0, event["output_tokens"])
        chat.end = event["end"]


def _message(item):
    if not isinstance(item, dict) or item.get("role") not in ("system", "user", "assistant"):
        return None
    if not isinstance(item.get("text"), str):
        return None
    message = Message(item["role"], item["text"], item.get("is_raw") is True)
    end, n_left_out = item.get("end"), item.get("n_left_out")
    message.end = end if isinstance(end, str) else ""
    message.n_left_out = n_left_out if isinstance(n_left_out, int) else 0
    return message
