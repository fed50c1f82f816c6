"""The messages in the DOM: built from nodes and text only, so that no model output can become markup."""

import js
from pyscript import document, ffi

from ui import dom
from ui.language import translate

# Closer to the end than this, the reader is reading along. Pixels, about two lines.
_NEAR_END_PX = 48


class Transcript:
    """The scrolling list of messages.

    Args:
        strings: for the labels of roles and endings.
    """

    def __init__(self, strings):
        self._strings = strings
        self._view = dom.element("transcript")
        self._welcome = dom.element("welcome")
        self._edit = dom.element("edit")
        self._edit_label = dom.TextSlot(self._edit.querySelector(".label"))
        self._articles = []
        self._follows = True
        # Where the view stood when it was last moved to the end.
        self._end_px = 0
        dom.listen(self._view, "scroll", lambda _event: self._note_scroll())
        # A growing prompt box or an opening panel moves the end out of sight without any scrolling.
        js.ResizeObserver.new(ffi.create_proxy(lambda *_: self._keep_end())).observe(self._view)

    def add(self, message):
        """Show a message at the end and scroll there."""
        article = _article(message)
        translate(article, self._strings)
        self._articles.append(article)
        self._view.append(article)
        self._welcome.hidden = True
        self._follows = True
        self._keep_end()

    def offer_edit(self, label):
        """Show the button of the last question with this text; None: no button."""
        self._edit.hidden = label is None
        if label is not None:
            self._edit_label.show(label)
            self._articles[-2].append(self._edit)

    def resume(self):
        """Let the last message grow again; it has not ended after all."""
        mark = self._articles[-1].querySelector(".mark")
        if mark:
            mark.remove()
        self._follows = True
        self.set_writing(True)
        self._keep_end()

    def replace(self, text):
        """Put `text` in place of what the last message says."""
        self._articles[-1].querySelector(".text").textContent = dom.visible(text)
        self._keep_end()

    def append(self, text):
        """Add text to the last message."""
        # The event of a scroll comes up to a frame late, and would find the view pulled down again.
        if self._view.scrollTop < self._end_px:
            self._note_scroll()
        self._articles[-1].querySelector(".text").append(document.createTextNode(dom.visible(text)))
        self._keep_end()

    def set_writing(self, is_writing):
        """Mark the last message as growing, or as complete: a screen reader reads it then."""
        self._articles[-1].setAttribute("aria-busy", "true" if is_writing else "false")

    def finish(self, message):
        """Show how the last message ended; its text is put in one node again."""
        article = self._articles[-1]
        article.querySelector(".text").textContent = dom.visible(message.text)
        mark = "mark." + message.end
        if self._strings.has(mark):
            note = dom.create("p", "mark")
            note.dataset.string = mark
            article.append(note)
            translate(article, self._strings)
        self.set_writing(False)
        self._keep_end()

    def drop_last(self, count):
        """Take the last `count` messages away."""
        for _ in range(count):
            self._articles.pop().remove()
        self._welcome.hidden = bool(self._articles)

    def clear(self):
        """Take all messages away."""
        self.drop_last(len(self._articles))

    def _note_scroll(self):
        view = self._view
        self._follows = view.scrollHeight - view.scrollTop - view.clientHeight < _NEAR_END_PX

    def _keep_end(self):
        if self._follows:
            self._view.scrollTop = self._view.scrollHeight
            self._end_px = self._view.scrollTop


def _article(message):
    article = dom.create("article", "message")
    article.dataset.role = message.role
    label = dom.create("h2", "role")
    label.dataset.string = "role." + message.role
    text = dom.create("div", "text")
    text.dir = "auto"
    text.textContent = dom.visible(message.text)
    article.append(label, text)
    return article
