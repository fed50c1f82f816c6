"""The calm bar that tells of something mended, or done; dismissible."""

from ui import dom


class NoticeBar:
    """Shows one `notice` of the engine, or of the page itself.

    Args:
        strings: the sentence of each code; without one the engine's own words are shown.
        on_dismiss: called when the visitor has read it.
    """

    def __init__(self, strings, on_dismiss):
        self._strings = strings
        self._bar = dom.element("notice")
        self._words = dom.TextSlot(self._bar.querySelector(".words"))
        dom.listen(dom.element("dismiss-notice"), "click", lambda _event: on_dismiss())

    def show(self, notice):
        """Show {code, message, hint, data}; None hides the bar."""
        self._bar.hidden = notice is None
        self._bar.dataset.code = notice["code"] if notice else ""
        if notice:
            key = "notice." + notice["code"]
            if self._strings.has(key):
                self._words.show(self._strings.text(key, **notice["data"]))
            else:
                self._words.show((notice["message"] + " " + notice["hint"]).strip())
