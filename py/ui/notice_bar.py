"""The calm bar that tells of something mended; dismissible."""

from ui import dom


class NoticeBar:
    """Shows one `notice` of the engine.

    Args:
        strings: the sentence of each code; without one the engine's own words are shown.
    """

    def __init__(self, strings):
        self._strings = strings
        self._bar = dom.element("notice")
        self._words = dom.TextSlot(self._bar.querySelector(".words"))
        self._notice = None
        dom.listen(dom.element("dismiss-notice"), "click", lambda _event: self.clear())

    def show(self, notice):
        """Show {code, message, hint}."""
        self._notice = notice
        self.render()

    def clear(self):
        """Hide the bar."""
        self._notice = None
        self.render()

    def render(self):
        """Say it again, for instance in another language."""
        notice = self._notice
        self._bar.hidden = notice is None
        self._bar.dataset.code = notice["code"] if notice else ""
        if notice:
            key = "notice." + notice["code"]
            words = self._strings.text(key) if self._strings.has(key) else notice["message"] + " " + notice["hint"]
            self._words.show(words.strip())
