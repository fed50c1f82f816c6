"""The few DOM calls that every view shares.

Page code makes no JavaScript call that may throw: MicroPython 1.27 cannot catch a JavaScript exception, it unwinds
through the Python frames (measured). A property that is undefined raises AttributeError instead; see `text_of`.
"""

import json

import js
from pyscript import document, ffi


def element(element_id):
    """Return the element with this id; the page's static markup has it."""
    return document.getElementById(element_id)


def create(tag, class_name):
    """Return a new, empty element."""
    node = document.createElement(tag)
    node.className = class_name
    return node


def listen(target, kind, handler):
    """Call `handler(event)` for each event of `kind`."""
    target.addEventListener(kind, ffi.create_proxy(handler))


def visible(text):
    """Return `text` fit for the DOM: MicroPython cuts a string at NUL on its way into JavaScript (measured)."""
    return text.replace("\0", "\u2400")


def text_of(target, name):
    """Return the string property `name` of a JavaScript object, or "" when there is none."""
    value = getattr(target, name, "")
    return value if isinstance(value, str) else ""


def form_values(form):
    """Return the named values of a form as a dict of strings.

    FormData makes the text well-formed (a lone surrogate becomes U+FFFD) and JSON carries a NUL; reading
    `.value` from Python would keep the one and lose the other. A checkbox that is off has no entry.
    """
    return json.loads(js.JSON.stringify(js.Object.fromEntries(js.FormData.new(form))))


class TextSlot:
    """Writes text into one element, and only when it changed."""

    def __init__(self, node):
        self._node = node
        self._text = None

    def show(self, text):
        """Make `text` the content of the element."""
        if text != self._text:
            self._text = text
            self._node.textContent = visible(text)
