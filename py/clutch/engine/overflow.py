"""What happens when a chat outgrows the context: the answer ends, or the oldest turns are left out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

Message = Mapping[str, str]


class Overflow(StrEnum):
    """What the request asked for."""

    STOP = "stop"
    DROP_OLDEST = "drop_oldest"


@dataclass(frozen=True)
class Chat:
    """Messages of a chat, as far as they still take part.

    Args:
        messages: those that the model reads.
        encode: messages to token ids, through the model's template.
        n_dropped: how many were left out so far.
    """

    messages: Sequence[Message]
    encode: Callable[[Sequence[Message]], list[int]]
    n_dropped: int = 0

    def token_ids(self) -> list[int]:
        """Return the prompt."""
        return self.encode(self.messages)

    def without_oldest_turn(self) -> "Chat | None":
        """Return the chat without its oldest turn, or None when only the last question is left.

        A turn is a question and all that follows up to the next question. System messages at the beginning stay.
        """
        roles = [message.get("role") for message in self.messages]
        n_system = next((i for i, role in enumerate(roles) if role != "system"), len(roles))
        second = next((i for i in range(n_system + 1, len(roles)) if roles[i] == "user"), None)
        if second is None:
            return None
        kept = [*self.messages[:n_system], *self.messages[second:]]
        return Chat(kept, self.encode, self.n_dropped + second - n_system)

    def within(self, n_tokens: int) -> "tuple[Chat, list[int]]":
        """Return the chat without as many of its oldest turns as it takes, and its prompt.

        The prompt has at most `n_tokens`, unless the last question alone has more.
        """
        chat: Chat = self
        token_ids = chat.token_ids()
        while len(token_ids) > n_tokens and (shorter := chat.without_oldest_turn()) is not None:
            chat, token_ids = shorter, shorter.token_ids()
        return chat, token_ids
