"""The facts of the page, and how they are shown. Changed by `ui/intents.py` (the visitor) and `ui/engine_events.py`."""

from pyscript import document, window

from ui import controls, dom, status
from ui.conversation import Conversation
from ui.error_box import ErrorBox
from ui.notice_bar import NoticeBar
from ui.prompt_box import PromptBox
from ui.pulse import Pulse, Restarts
from ui.settings_form import SettingsForm
from ui.status_bar import StatusBar
from ui.transcript import Transcript

_BUTTONS = ("generate", "stop", "reset")


class Page:
    """One state, the facts beside it, and the views.

    Args:
        strings: the sentences.
        parameters: the URL's.
        on_generate: called when the visitor sends the prompt with the keyboard.
    """

    def __init__(self, strings, parameters, on_generate):
        self.strings = strings
        self.parameters = parameters
        self.client = None
        self.state = "starting"
        self.pulse = Pulse()
        self.restarts = Restarts()
        self.progress = None
        self.conversation = Conversation()
        # The running request, and the last one whose answer the engine could go on with.
        self.exchange = None
        self.answered = None
        # The model asked for and not yet loaded or refused, and the last one asked for: a URL or a File.
        self.pending_source = None
        self.source = None
        self.model = {}
        self.self_test = {}
        self.adapter = {}
        self.numbers = {}
        # Why the last answer or load ended.
        self.end = ""
        self.prompt = PromptBox(on_generate, self.render)
        self.settings = SettingsForm(strings, parameters)
        self.transcript = Transcript(strings)
        self.errors = ErrorBox(strings)
        self.notices = NoticeBar(strings)
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

    def enter(self, state):
        """Go to a state; what was in progress in the old one is over."""
        if state != self.state:
            self.progress = None
        self.state = state
        self.render()

    def say(self, message):
        """Append a message to the conversation and show it; return it."""
        self.transcript.add(self.conversation.add(message))
        return message

    def take_back(self, question):
        """Put the last question back before what is typed, and take its answer away."""
        self.conversation.drop_last(2)
        self.transcript.drop_last(2)
        typed = self.prompt.text
        self.prompt.write(question.text + ("\n\n" + typed if not self.prompt.is_empty else ""))

    def break_off(self, end):
        """End the running answer, if any; keep what there is of it, or else give the question back.

        An answer that was to be continued, and got nothing new, ended as it had before.
        """
        exchange, self.exchange = self.exchange, None
        if exchange is None:
            return
        self.end = end
        if exchange.answer.text:
            if exchange.is_writing or not exchange.answer.end:
                exchange.answer.end = end
            self.transcript.finish(exchange.answer)
            self.answered = exchange if exchange.is_writing else None
        else:
            self.take_back(exchange.question)

    def set_numbers(self, numbers):
        """Replace the numbers of the answer; the model's context length goes with them."""
        self.numbers = dict(numbers, context_length=self.model.get("context_length"))

    def render(self):
        """Show the state: buttons, names and the status bar."""
        document.body.dataset.state = self.state
        for name, (is_enabled, label) in controls.buttons(self.state, self.prompt.is_empty).items():
            self._nodes[name].disabled = not is_enabled
            self._labels[name].show(self.strings.text(label))
        self._continue.hidden = self._continue.disabled = not self.can_continue
        edit_label = self.edit_label
        self.transcript.offer_edit(edit_label and self.strings.text(edit_label))
        self._model_file.disabled = not controls.can_choose_model(self.state)
        recovery = controls.recovery(self.state, self.end)
        self._recover.hidden = recovery is None
        if recovery:
            self._recover_label.show(self.strings.text("recovery." + recovery))
        self._model.show(status.model_line(self.model) or self.strings.text("model.none"))
        self._adapter.show(status.adapter_line(self.adapter))
        self._self_test.show(status.self_test_line(self.strings, self.self_test))
        self.render_status()

    def render_status(self):
        """Show the status bar only: what changes with every piece of an answer."""
        is_writing = self.exchange is not None and self.exchange.is_writing
        state = status.shown_state(self.state, self.pulse.is_stop_slow)
        facts = (self.strings, state, self.progress, is_writing, self.end)
        self._status.show(
            status.status_line(*facts),
            status.phase_line(*facts),
            status.numbers_line(self.strings, self.numbers),
        )
        self._status.show_progress(status.progress_fraction(self.state, self.progress, is_writing))

    def retranslate(self):
        """Say everything again after the language changed; the markup is translated already."""
        self.settings.check()
        self.errors.render()
        self.notices.render()
        self.render()


def _label(button):
    return dom.TextSlot(button.querySelector(".label"))


def now_ms():
    """Return the page's clock."""
    return window.performance.now()
