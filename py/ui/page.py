"""The facts of the page, and how they are shown. Changed by `ui/intents.py` (the visitor) and `ui/engine_events.py`."""

from pyscript import document, window

from ui import controls, dom, status
from ui.conversation import Conversation
from ui.error_box import ErrorBox
from ui.prompt_box import PromptBox
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
        self.progress = None
        self.conversation = Conversation()
        self.exchange = None
        # The model asked for and not yet loaded or refused, and the last one asked for: a URL or a File.
        self.pending_source = None
        self.source = None
        self.model = {}
        self.adapter = {}
        self.numbers = {}
        # Why the last answer ended.
        self.end = ""
        self.prompt = PromptBox(on_generate, self.render)
        self.settings = SettingsForm(strings, parameters)
        self.transcript = Transcript(strings)
        self.errors = ErrorBox(strings)
        self._status = StatusBar()
        self._nodes = {name: dom.element(name) for name in _BUTTONS}
        self._labels = {name: _label(node) for name, node in self._nodes.items()}
        self._model_file = dom.element("model-file")
        self._recover = dom.element("recover")
        self._recover_label = _label(self._recover)
        self._model = dom.TextSlot(dom.element("model-name"))
        self._adapter = dom.TextSlot(dom.element("adapter-name"))

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

    def set_numbers(self, numbers):
        """Replace the numbers of the answer; the model's context length goes with them."""
        self.numbers = dict(numbers, context_length=self.model.get("context_length"))

    def render(self):
        """Show the state: buttons, names and the status bar."""
        document.body.dataset.state = self.state
        for name, (is_enabled, label) in controls.buttons(self.state, self.prompt.is_empty).items():
            self._nodes[name].disabled = not is_enabled
            self._labels[name].show(self.strings.text(label))
        self._model_file.disabled = not controls.can_choose_model(self.state)
        recovery = controls.recovery(self.state)
        self._recover.hidden = recovery is None
        if recovery:
            self._recover_label.show(self.strings.text("recovery." + recovery))
        self._model.show(status.model_line(self.model) or self.strings.text("model.none"))
        self._adapter.show(status.adapter_line(self.adapter))
        self.render_status()

    def render_status(self):
        """Show the status bar only: what changes with every piece of an answer."""
        is_writing = self.exchange is not None and self.exchange.has_text
        facts = (self.strings, self.state, self.progress, is_writing, self.end)
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
        self.render()


def _label(button):
    return dom.TextSlot(button.querySelector(".label"))


def now_ms():
    """Return the page's clock."""
    return window.performance.now()
