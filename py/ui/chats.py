"""The chats of the page in the order of their tabs; one of them is in view. Imports on CPython for tests."""

from clutch.protocol import MAX_SESSIONS


class Chats:
    """At least one, at most MAX_SESSIONS.

    Args:
        chat: the first.
    """

    def __init__(self, chat):
        self._chats = [chat]
        self.in_view = chat
        # Numbers whose session the engine has not closed yet.
        self._closing = set()

    def __iter__(self):
        return iter(list(self._chats))

    def __len__(self):
        return len(self._chats)

    @property
    def numbers(self):
        """The numbers of all chats."""
        return [chat.number for chat in self._chats]

    @property
    def free_number(self):
        """The lowest unused number, or None."""
        free = [n for n in range(MAX_SESSIONS) if n not in self._closing and self.find(n) is None]
        return free[0] if free else None

    def find(self, number):
        """Return the chat with this number, or None: it was closed, or the number is None."""
        found = [chat for chat in self._chats if chat.number == number]
        return found[0] if found else None

    def add(self, chat):
        """Put a chat behind the others and into view."""
        self._chats.append(chat)
        self.in_view = chat

    def show(self, chat):
        """Bring a chat into view."""
        self.in_view = chat

    def remove(self, chat):
        """Take a chat away, not the last; the one beside it comes into view if it was."""
        place = self._chats.index(chat)
        del self._chats[place]
        if chat is self.in_view:
            self.in_view = self._chats[min(place, len(self._chats) - 1)]

    def await_closed(self, number):
        """Keep a number from being used before the engine has closed its session."""
        self._closing.add(number)

    def note_closed(self, number):
        """Let a number be used again; return whether that was waited for."""
        was_awaited = number in self._closing
        self._closing.discard(number)
        return was_awaited

    def forget_closing(self):
        """A new engine has none of the sessions that were to be closed in the old one."""
        self._closing = set()

    def wished(self, wish):
        """Return the chat that is "next" to the one in view, "previous", "first" or "last"; around the ends."""
        if wish in ("first", "last"):
            return self._chats[0 if wish == "first" else -1]
        step = 1 if wish == "next" else -1
        return self._chats[(self._chats.index(self.in_view) + step) % len(self._chats)]
