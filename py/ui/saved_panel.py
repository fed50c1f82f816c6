"""The list of the chats that are kept in this browser; hidden while there are none."""

from ui import dom, status

_ACTIONS = ("restore", "delete")


class SavedPanel:
    """`details#saved`: the newest first, each with a button to restore and one to delete it.

    Args:
        strings: for the buttons.
    """

    def __init__(self, strings):
        self._strings = strings
        # As the engine lists them: [{name, size_bytes}], oldest first.
        self.entries = []
        self._panel = dom.element("saved")
        self._list = dom.element("saved-list")
        self._count = dom.TextSlot(dom.element("saved-count"))
        self._shown = None

    @property
    def names(self):
        """The names in use."""
        return [entry["name"] for entry in self.entries]

    def show(self, is_ready):
        """Show what is kept; without a model nothing of it can be restored."""
        shown = (self._strings.language, is_ready, [(entry["name"], entry["size_bytes"]) for entry in self.entries])
        if shown == self._shown:
            return
        self._shown = shown
        self._panel.hidden = not self.entries
        self._count.show(str(len(self.entries)))
        self._list.replaceChildren()
        for i in range(len(self.entries) - 1, -1, -1):
            self._list.append(self._item(i, is_ready))

    def connect(self, intents):
        """Call `intents[action](name)` for a click on a button; `action` is "restore" or "delete"."""
        dom.listen(self._list, "click", lambda event: self._click(event, intents))

    def _item(self, i, is_ready):
        entry = self.entries[i]
        item = dom.create("li", "")
        name = dom.create("span", "title")
        name.dir = "auto"
        name.textContent = dom.visible(entry["name"])
        size = dom.create("span", "size")
        size.textContent = status.size(entry["size_bytes"])
        item.append(name, size)
        for action in _ACTIONS:
            button = dom.create("button", "quiet")
            button.type = "button"
            button.dataset.action = action
            button.dataset.index = str(i)
            button.textContent = self._strings.text("button." + action)
            button.setAttribute("aria-label", button.textContent + ": " + name.textContent)
            button.disabled = action == "restore" and not is_ready
            item.append(button)
        return item

    def _click(self, event, intents):
        button = event.target.closest("button")
        if button:
            intents[button.dataset.action](self.entries[int(button.dataset.index)]["name"])
