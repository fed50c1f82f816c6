"""The messages in the DOM: built from nodes and text only, so that no model output can become markup."""

import js
from pyscript import document, ffi, window

from ui import dom
from ui.language import translate

# Closer to the end than this, the reader is reading along. Pixels, about two lines.
_NEAR_END_PX = 48
# So long a screen reader may take to notice what has changed.
_QUIET_MS = 200


class Transcript:
    """The scrolling list of the messages of the chat in view. What is said of a message that is not shown is ignored.

    Args:
        strings: for the labels of roles and endings.
    """

    def __init__(self, strings):
        self._strings = strings
        self._view = dom.element("transcript")
        self._welcome = dom.element("welcome")
        self._edit = dom.element("edit")
        self._edit_label = dom.TextSlot(self._edit.querySelector(".label"))
        # The messages on show, and their articles.
        self._messages = []
        self._articles = []
        self._follows = True
        # Where the view stood when it was last moved to the end.
        self._end_px = 0
        dom.listen(self._view, "scroll", lambda _event: self._note_scroll())
        # A growing prompt box or an opening panel moves the end out of sight without any scrolling.
        js.ResizeObserver.new(ffi.create_proxy(lambda *_: self._keep_end())).observe(self._view)

    def show(self, messages, is_growing):
        """Show another chat, from its end; the last of its messages may be growing."""
        # Not read aloud: nobody said it just now.
        self._view.setAttribute("aria-live", "off")
        self.clear()
        for message in messages:
            self.add(message)
            self.set_writing(message, is_growing and message is messages[-1])
            self.mark(message)
        window.setTimeout(ffi.create_proxy(lambda *_: self._view.setAttribute("aria-live", "polite")), _QUIET_MS)

    def add(self, message):
        """Show a message at the end and scroll there."""
        article = _article(message)
        translate(article, self._strings)
        self._messages.append(message)
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
            self._keep_end()

    def resume(self, message):
        """Let the last message grow again; it has not ended after all."""
        self._take_mark(message, ".mark")
        self._follows = True
        self.set_writing(message, True)
        self._keep_end()

    def replace(self, message):
        """Show what the last message says now, in place of what it said."""
        if self._is_last(message):
            self._articles[-1].querySelector(".text").textContent = dom.visible(message.text)
            self._keep_end()

    def append(self, message, text):
        """Add text to the last message."""
        if not self._is_last(message):
            return
        # The event of a scroll comes up to a frame late, and would find the view pulled down again.
        if self._view.scrollTop < self._end_px:
            self._note_scroll()
        self._articles[-1].querySelector(".text").append(document.createTextNode(dom.visible(text)))
        self._keep_end()

    def set_writing(self, message, is_writing):
        """Mark the last message as growing, or as complete: a screen reader reads it then."""
        if self._is_last(message):
            self._articles[-1].setAttribute("aria-busy", "true" if is_writing else "false")

    def finish(self, message):
        """Show how the last message ended; its text is put in one node again."""
        self.replace(message)
        self.set_writing(message, False)
        self.mark(message)

    def mark(self, message):
        """Show beside the last message how it ended, and what the model did not read for it."""
        if not self._is_last(message):
            return
        article = self._articles[-1]
        self._take_mark(message, ".left-out")
        if message.n_left_out:
            note = dom.create("p", "left-out")
            note.dataset.string = "mark.left_out"
            note.dataset.count = str(message.n_left_out)
            article.prepend(note)
        end = "mark." + message.end
        self._take_mark(message, ".mark")
        # What goes on after all has not ended as it had before.
        if self._strings.has(end) and article.getAttribute("aria-busy") != "true":
            note = dom.create("p", "mark")
            note.dataset.string = end
            article.append(note)
        translate(article, self._strings)
        self._keep_end()

    def drop(self, messages):
        """Take the last messages away, if they are on show."""
        for message in reversed(messages):
            if self._is_last(message):
                self._messages.pop()
                self._articles.pop().remove()
        self._welcome.hidden = bool(self._articles)

    def clear(self):
        """Take all messages away."""
        self.drop(list(self._messages))

    def _is_last(self, message):
        return bool(self._messages) and self._messages[-1] is message

    def _take_mark(self, message, kind):
        mark = self._articles[-1].querySelector(kind) if self._is_last(message) else None
        if mark:
            mark.remove()

    def _note_scroll(self):
        view = self._view
        # A bar that opens below takes the end out of sight, but the reader has not moved.
        has_moved_up = view.scrollTop < self._end_px
        is_near_end = view.scrollHeight - view.scrollTop - view.clientHeight < _NEAR_END_PX
        self._follows = is_near_end or (self._follows and not has_moved_up)

    def _keep_end(self):
        if self._follows and self._articles:
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
