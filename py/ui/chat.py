"""One conversation of the page, and what is being done about it. Imports on CPython for tests."""

from ui import controls
from ui.conversation import Conversation

# Of the first question, in characters.
_TITLE_CHARS = 56


class Chat:
    """What the page knows of one of the engine's sessions.

    Args:
        number: of the session.
        state: see `ui/controls.py`.
    """

    def __init__(self, number, state):
        self.number = number
        self.state = state
        # The last `progress` of this state.
        self.progress = None
        self.conversation = Conversation()
        # The running request, and the last one whose answer the engine could go on with.
        self.exchange = None
        self.answered = None
        self.numbers = {}
        # Why the last answer ended.
        self.end = ""
        # What went wrong, or was mended, and was not dismissed yet.
        self.error = None
        self.notice = None
        # What is typed and not sent, while another chat is in view.
        self.draft = ""
        # The name that it is being saved under, or "".
        self.saving = ""

    @property
    def title(self):
        """The first words of the first question; "" before it."""
        questions = [message.text for message in self.conversation.messages if message.role == "user"]
        words = " ".join(questions[0].split()) if questions else ""
        return words if len(words) <= _TITLE_CHARS else words[: _TITLE_CHARS - 1].rstrip() + "…"

    @property
    def is_empty(self):
        """Whether nothing was said."""
        return not self.conversation.messages

    @property
    def can_continue(self):
        """Whether Continue is offered."""
        return controls.can_continue(self.state, self.answered.answer.end if self.answered else "")

    @property
    def edit_label(self):
        """The key of the label of the last question's button, or None."""
        is_answered = self.conversation.last_question is not None
        end = self.conversation.messages[-1].end if is_answered else None
        return controls.edit_label(self.state, end, self.can_continue)

    @property
    def is_writing(self):
        """Whether the running request has added to its answer."""
        return self.exchange is not None and self.exchange.is_writing

    def awaits(self, request_id):
        """Whether this request is the one that runs."""
        return self.exchange is not None and self.exchange.request_id == request_id

    def enter(self, state):
        """Go to a state; what was in progress in the old one is over."""
        if state != self.state:
            self.progress = None
        self.state = state

    def begin(self, exchange):
        """Note that a request is on its way; at once, so that a second click finds the button off."""
        self.exchange = exchange
        self.answered = None
        self.numbers = {}
        self.end = ""
        self.enter("generating")

    def forget(self):
        """Begin anew, as after Reset."""
        self.conversation.clear()
        self.exchange = self.answered = None
        self.numbers = {}
        self.end = ""

    def fork(self, number):
        """Return a chat that begins as a copy of this one, which nothing runs in."""
        copy = Chat(number, "opening")
        copy.conversation = self.conversation.copy()
        if self.answered is not None:
            copy.answered = self.answered.copy(copy.conversation.messages[-2:])
        copy.numbers = self.numbers
        copy.end = self.end
        return copy
