"""The prompt box in the DOM."""

from pyscript import window

from ui import controls, dom


class PromptBox:
    """The textarea and its keys.

    Args:
        on_generate: called when the visitor sends the prompt with the keyboard.
        on_input: called when the text changed.
    """

    def __init__(self, on_generate, on_input):
        self._form = dom.element("composer")
        self._box = dom.element("prompt")
        self._on_generate = on_generate
        dom.listen(self._box, "keydown", self._press)
        dom.listen(self._box, "input", lambda _event: on_input())
        dom.listen(self._form, "submit", lambda event: event.preventDefault())

    @property
    def text(self):
        """The text as typed, well-formed."""
        return dom.form_values(self._form)["prompt"].replace("\r\n", "\n")

    @property
    def is_empty(self):
        """Whether there is nothing but space."""
        return controls.is_blank(self.text)

    def write(self, text):
        """Replace the text."""
        self._box.value = dom.visible(text)

    def focus(self):
        """Put the cursor here, unless that would raise an on-screen keyboard."""
        if window.matchMedia("(hover: hover)").matches:
            self._box.focus()

    def _press(self, event):
        if controls.prompt_key(event.key, event.shiftKey, event.isComposing, event.keyCode) == "generate":
            event.preventDefault()
            self._on_generate()
