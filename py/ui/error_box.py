"""The box that tells what went wrong and what to do; dismissible, and never in the way of the rest."""

from ui import dom


class ErrorBox:
    """Shows one error of `clutch/errors.py`: its code, message and hint.

    Args:
        strings: the title of each code; also the message and hint of errors that the page makes without words.
        on_dismiss: called when the visitor has read it.
    """

    def __init__(self, strings, on_dismiss):
        self._strings = strings
        self._box = dom.element("error")
        self._title = dom.TextSlot(self._box.querySelector(".title"))
        self._code = dom.TextSlot(self._box.querySelector(".code"))
        self._message = dom.TextSlot(self._box.querySelector(".message"))
        self._hint = dom.TextSlot(self._box.querySelector(".hint"))
        self._error = None
        dom.listen(dom.element("dismiss"), "click", lambda _event: on_dismiss())

    @property
    def code(self):
        """The code of the error on show, or ""."""
        return self._error["code"] if self._error else ""

    def show(self, error):
        """Show {code, message, hint, data}; None hides the box."""
        self._error = error
        self._box.hidden = self._error is None
        self._box.dataset.code = self.code
        if self._error is None:
            return
        self._title.show(self._strings.text("error." + self.code))
        self._code.show(self.code)
        self._message.show(self._words("message"))
        self._hint.show(self._words("hint"))

    def _words(self, part):
        # An error that the page itself made may name its cause, and is told in the visitor's language.
        caused = "error." + self.code + "." + self._error["data"].get("cause", "") + "." + part
        key = "error." + self.code + "." + part
        if self._strings.has(caused):
            return self._strings.text(caused)
        return self._error[part] or (self._strings.text(key) if self._strings.has(key) else "")
