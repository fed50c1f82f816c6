"""The facts of the page, and how they are shown. Changed by `ui/intents.py`, `ui/chat_intents.py` (the visitor) and
`ui/engine_events.py`.

What belongs to one conversation stands in its `Chat`; the DOM shows the chat in view, and the engine's facts beside it.
"""

from pyscript import document, window

from ui import controls, dom, status
from ui.benchmark_panel import BenchmarkPanel
from ui.chat import Chat
from ui.chat_bar import ChatBar
from ui.chats import Chats
from ui.error_box import ErrorBox
from ui.memory_panel import MemoryPanel
from ui.notice_bar import NoticeBar
from ui.prompt_box import PromptBox
from ui.pulse import Pulse, Restarts
from ui.saved_panel import SavedPanel
from ui.settings_form import SettingsForm
from ui.status_bar import StatusBar
from ui.transcript import Transcript

_BUTTONS = ("generate", "stop", "reset")


class Page:
    """The chats, the engine's facts beside them, and the views.

    Args:
        strings: the sentences.
        parameters: the URL's.
        on_generate: called when the visitor sends the prompt with the keyboard.
    """

    def __init__(self, strings, parameters, on_generate):
        self.strings = strings
        self.parameters = parameters
        self.client = None
        self.chats = Chats(Chat(0, "starting"))
        self.pulse = Pulse()
        self.restarts = Restarts()
        # The model asked for and not yet loaded or refused, and the last one asked for: a URL or a File.
        self.pending_source = None
        self.source = None
        self.model = {}
        self.self_test = {}
        self.kernels = {}
        # What the last load said of itself; for the first, when the model was there, in ms of the page's life.
        self.load_facts = {}
        self.adapter = {}
        # Why the last load ended, or the model went.
        self.end = ""
        # What went wrong, or was mended, in no chat but in the engine.
        self.error = None
        self.notice = None
        self.prompt = PromptBox(on_generate, self.render)
        self.settings = SettingsForm(strings, parameters)
        self.transcript = Transcript(strings)
        self.chat_bar = ChatBar(strings)
        self.memory = MemoryPanel(strings)
        self.saved = SavedPanel(strings)
        self.benchmark = BenchmarkPanel(strings)
        self._errors = ErrorBox(strings, self._dismiss_error)
        self._notices = NoticeBar(strings, self._dismiss_notice)
        self._status = StatusBar()
        self._nodes = {name: dom.element(name) for name in _BUTTONS}
        self._labels = {name: _label(node) for name, node in self._nodes.items()}
        self._continue = dom.element("continue")
        self._model_file = dom.element("model-file")
        self._recover = dom.element("recover")
        self._recover_label = _label(self._recover)
        self._model = dom.TextSlot(dom.element("model-name"))
        self._adapter = dom.TextSlot(dom.element("adapter-name"))
        self._self_test = dom.TextSlot(dom.element("self-test"))
        self._kernels = dom.TextSlot(dom.element("kernels"))

    @property
    def chat(self):
        """The chat in view."""
        return self.chats.in_view

    @property
    def state(self):
        """How the engine's worker is: what is common to all chats."""
        return controls.common_state([chat.state for chat in self.chats])

    @property
    def recovery(self):
        """How the visitor gets a model back, or None."""
        return controls.recovery(self.chat.state, self.end)

    def enter(self, state):
        """Bring all chats to a state."""
        for chat in self.chats:
            chat.enter(state)
        self.render()

    def view(self, change):
        """Let `change()` bring another chat into view, and show it; what is typed stays with the chat before."""
        self.chat.draft = self.prompt.text
        change()
        self.show_chat()

    def show_chat(self):
        """Show the chat in view."""
        chat = self.chat
        self.prompt.write(chat.draft)
        self.transcript.show(chat.conversation.messages, chat.exchange is not None)
        self.render()

    def say(self, chat, message):
        """Append a message to a chat, and return it."""
        chat.conversation.add(message)
        if chat is self.chat:
            self.transcript.add(message)
        return message

    def take_back(self, chat):
        """Put the last question back before what is typed, and take its answer away."""
        messages = chat.conversation.messages[-2:]
        chat.conversation.drop_last(2)
        self.transcript.drop(messages)
        is_in_view = chat is self.chat
        typed = self.prompt.text if is_in_view else chat.draft
        text = messages[0].text + ("" if controls.is_blank(typed) else "\n\n" + typed)
        if is_in_view:
            self.prompt.write(text)
        else:
            chat.draft = text

    def break_off(self, chat, end):
        """End the running answer, if any; keep what there is of it, or else give the question back.

        An answer that was to be continued, and got nothing new, ended as it had before.
        """
        exchange, chat.exchange = chat.exchange, None
        if exchange is None:
            return
        chat.end = end
        if exchange.answer.text:
            if exchange.is_writing or not exchange.answer.end:
                exchange.answer.end = end
            self.transcript.finish(exchange.answer)
            chat.answered = exchange if exchange.is_writing else None
        else:
            self.take_back(chat)

    def refuse(self, code):
        """Show an error that the page makes itself, without words of its own."""
        self.error = {"code": code, "message": "", "hint": "", "data": {}}
        self.render()

    def quieten(self):
        """Take away what was said of errors and mended things."""
        for place in (self, self.chat):
            place.error = place.notice = None

    def _dismiss_error(self):
        (self if self.error else self.chat).error = None
        self.render()

    def _dismiss_notice(self):
        (self if self.notice else self.chat).notice = None
        self.render()

    def render(self):
        """Show the state: tabs, buttons, names and the status bar."""
        chat = self.chat
        document.body.dataset.state = chat.state
        document.body.dataset.session = str(chat.number)
        for name, (is_enabled, label) in controls.buttons(chat.state, self.prompt.is_empty).items():
            self._nodes[name].disabled = not is_enabled
            self._labels[name].show(self.strings.text(label))
        self._continue.hidden = self._continue.disabled = not chat.can_continue
        self.transcript.offer_edit(chat.edit_label and self.strings.text(chat.edit_label))
        self._model_file.disabled = not controls.can_choose_model([other.state for other in self.chats])
        self._recover.hidden = self.recovery is None
        if self.recovery:
            self._recover_label.show(self.strings.text("recovery." + self.recovery))
        self._model.show(status.model_line(self.model) or self.strings.text("model.none"))
        self._adapter.show(status.adapter_line(self.adapter))
        self._self_test.show(status.self_test_line(self.strings, self.self_test))
        self._kernels.show(status.kernels_line(self.strings, self.kernels))
        self._errors.show(self.error or chat.error)
        self._notices.show(self.notice or chat.notice)
        self.chat_bar.show(self.chats)
        self.saved.show(is_ready=bool(self.model))
        self.benchmark.show(is_ready=bool(self.model) and all([other.state == "ready" for other in self.chats]))
        self.render_status()

    def render_status(self):
        """Show the status bar and the memory only: what changes with every piece of an answer."""
        chat = self.chat
        state = status.shown_state(chat.state, self.pulse.is_stop_slow)
        end = self.end if chat.state == "empty" else chat.end
        facts = (self.strings, state, chat.progress, chat.is_writing, end)
        numbers = dict(chat.numbers, context_length=self.model.get("context_length"))
        self._status.show(
            status.status_line(*facts),
            status.phase_line(*facts),
            status.numbers_line(self.strings, numbers),
        )
        self._status.show_progress(status.progress_fraction(chat.state, chat.progress, chat.is_writing))
        self.memory.show(numbers, self.chats)

    def retranslate(self):
        """Say everything again after the language changed; the markup is translated already."""
        self.settings.check()
        self.render()


def _label(button):
    return dom.TextSlot(button.querySelector(".label"))


def now_ms():
    """Return the page's clock."""
    return window.performance.now()
