"""The messages of a chat, oldest first. Imports on CPython for tests."""

import json

from clutch.errors import RequestError

_ROLES = ("system", "user", "assistant")


class Message:
    """One message.

    Args:
        role: "system", "user" or "assistant".
        text: what was said.
        is_raw: written without the chat template, so it is no part of the chat.
    """

    def __init__(self, role, text, is_raw=False):
        self.role = role
        self.text = text
        self.is_raw = is_raw
        # Why the text ends here: a finish reason, "error", "crashed", or "" while it is complete or still growing.
        self.end = ""
        # From this message on, the model does not read so many of the oldest ones; 0: nothing new about that.
        self.n_left_out = 0

    def copy(self):
        """Return a message that says the same."""
        copy = Message(self.role, self.text, self.is_raw)
        copy.end = self.end
        copy.n_left_out = self.n_left_out
        return copy


class Conversation:
    """The list of messages, and what of it the engine gets."""

    def __init__(self):
        self.messages = []

    def add(self, message):
        """Append a message and return it."""
        self.messages.append(message)
        return message

    def drop_last(self, count):
        """Take the last `count` messages away."""
        del self.messages[len(self.messages) - count :]

    def copy(self):
        """Return a conversation of the same messages, which goes its own way from here."""
        copy = Conversation()
        copy.messages = [message.copy() for message in self.messages]
        return copy

    @property
    def last_question(self):
        """The user's last message when an answer follows it and nothing else does, or None."""
        is_answered = [m.role for m in self.messages[-2:]] == ["user", "assistant"]
        return self.messages[-2] if is_answered else None

    @property
    def n_left_out(self):
        """How many of the oldest messages the model did not read any more at the end."""
        return max([0] + [message.n_left_out for message in self.messages])

    def clear(self):
        """Forget all messages."""
        self.messages = []

    def wire(self):
        """Return the chat as the engine's `messages`: [{role, content}], without raw ones."""
        return [{"role": m.role, "content": m.text} for m in self.messages if not m.is_raw]


def opening(text):
    """Split the `messages` parameter into ([Message] to show, text for the prompt box).

    Raises:
        RequestError: not a JSON list of {role, content}.
    """
    try:
        items = json.loads(text)
    except ValueError:
        raise RequestError("The parameter `messages` is not JSON.", hint="Write [{role, content}, ...].") from None
    if not isinstance(items, list):
        raise RequestError("The parameter `messages` is not a list.", hint="Write [{role, content}, ...].")
    messages = []
    for number, item in enumerate(items):
        role = item.get("role") if isinstance(item, dict) else None
        content = item.get("content") if isinstance(item, dict) else None
        if role not in _ROLES or not isinstance(content, str):
            raise RequestError(
                "Message " + str(number) + " of the parameter `messages` has no valid role and content.",
                hint="Roles: " + ", ".join(_ROLES) + ".",
                index=number,
            )
        messages.append(Message(role, content))
    if messages and messages[-1].role == "user":
        return messages[:-1], messages[-1].text
    return messages, ""
