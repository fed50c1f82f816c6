"""Puts the strings into the page and lets the visitor change the language.

Markup names its sentence by `data-string` (content; `data-count` is its {count}), `data-string-label` (aria-label),
`data-string-title` (aria-label and tooltip, of a button without words) or `data-string-placeholder`.
"""

from pyscript import document, window

from ui import dom
from ui import strings as string_tables

_KEY = "clutch.language"
_HTML_LANG = {"en": "en", "zh": "zh-Hans"}


def open_strings(parameter):
    """Return the strings in the language of this visitor."""
    stored = window.localStorage.getItem(_KEY) if _may_store() else None
    return string_tables.load("./strings", string_tables.choose_language(parameter, stored, window.navigator.language))


class LanguageSwitch:
    """The EN / 中文 buttons.

    Args:
        strings: the tables; their `language` is changed here and nowhere else.
        on_change: called after the markup was translated again.
    """

    def __init__(self, strings, on_change):
        self._strings = strings
        self._on_change = on_change
        self._buttons = {code: dom.element("lang-" + code) for code in string_tables.LANGUAGES}
        for code, button in self._buttons.items():
            dom.listen(button, "click", lambda _event, code=code: self._choose(code))
        self.translate()

    def _choose(self, code):
        self._strings.language = code
        if _may_store():
            window.localStorage.setItem(_KEY, code)
        self.translate()
        self._on_change()

    def translate(self):
        """Fill every element that names a sentence."""
        language = self._strings.language
        document.documentElement.lang = _HTML_LANG[language]
        for code, button in self._buttons.items():
            button.setAttribute("aria-pressed", "true" if code == language else "false")
        translate(document, self._strings)


def translate(root, strings):
    """Fill the elements under `root` that name a sentence."""
    for node in root.querySelectorAll("[data-string]"):
        count = dom.text_of(node.dataset, "count")
        node.textContent = strings.text(node.dataset.string, **({"count": count} if count else {}))
    for node in root.querySelectorAll("[data-string-label]"):
        node.setAttribute("aria-label", strings.text(node.dataset.stringLabel))
    for node in root.querySelectorAll("[data-string-placeholder]"):
        node.placeholder = strings.text(node.dataset.stringPlaceholder)

    for node in root.querySelectorAll("[data-string-title]"):
        node.title = strings.text(node.dataset.stringTitle)
        node.setAttribute("aria-label", node.title)


def _may_store():
    # With cookies blocked, touching localStorage throws, and Python could not catch that.
    return window.navigator.cookieEnabled
