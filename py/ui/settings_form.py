"""The settings in the DOM; what is valid comes from `ui/settings.py`."""

from ui import dom, settings


class SettingsForm:
    """The fields of `details#settings`.

    Args:
        strings: for the problems at the fields.
        parameters: the URL's, as initial values.
    """

    def __init__(self, strings, parameters):
        self._strings = strings
        self._panel = dom.element("settings")
        self._form = dom.element("settings-form")
        for name, text in settings.initial(parameters).items():
            self._input(name).value = text
        self._raw = dom.element("setting-raw")
        self._raw.checked = settings.is_on(parameters.get("raw"))
        self._cache = dom.element("setting-cache")
        dom.element("setting-overflow").value = settings.overflow(parameters.get("overflow"))
        dom.listen(self._form, "input", lambda _event: self.check())
        dom.listen(self._form, "submit", lambda event: event.preventDefault())
        self.check()

    @property
    def is_raw(self):
        """Whether the prompt goes to the model without the chat template."""
        return self._raw.checked

    @property
    def overflow(self):
        """What happens when the context is full."""
        return settings.overflow(dom.form_values(self._form)["overflow"])

    @property
    def keeps_cache(self):
        """Whether a saved chat keeps what was computed of it."""
        return self._cache.checked

    def read(self):
        """Return the params of a request, or None after leading the visitor to the first bad field."""
        params, problems = self.check()
        if not problems:
            return params
        self._panel.open = True
        self._input(next(name for name in settings.FIELDS if name in problems)).focus()
        return None

    def check(self):
        """Show each problem at its field; return what `settings.parse` returns."""
        params, problems = settings.parse(dom.form_values(self._form))
        for name, (_, smallest, largest, _) in settings.FIELDS.items():
            problem = problems.get(name)
            sentence = self._strings.text(problem, smallest=smallest, largest=largest) if problem else ""
            self._input(name).setAttribute("aria-invalid", "true" if problem else "false")
            dom.element("problem-" + name).textContent = sentence
        return params, problems

    def _input(self, name):
        return dom.element("setting-" + name)
