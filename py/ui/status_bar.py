"""The status line, the progress bar and the numbers in the DOM; what they say comes from `ui/status.py`."""

from ui import dom


class StatusBar:
    """Always visible; writes to the DOM only what changed."""

    def __init__(self):
        self._line = dom.TextSlot(dom.element("status"))
        # A live region reads every change aloud, so it gets the sentence without its counter.
        self._announcer = dom.TextSlot(dom.element("announcer"))
        self._numbers = dom.TextSlot(dom.element("numbers"))
        self._bar = dom.element("progress")

    def show(self, line, announcement, numbers):
        """Show the sentence, the one to read aloud, and the parts of the numbers."""
        self._line.show(line)
        self._announcer.show(announcement)
        self._numbers.show(" · ".join(numbers))

    def show_progress(self, fraction):
        """Show 0..1, -1 for a bar without an end, None for none."""
        self._bar.hidden = fraction is None
        if fraction is None or fraction < 0:
            self._bar.removeAttribute("value")
        else:
            self._bar.value = fraction
