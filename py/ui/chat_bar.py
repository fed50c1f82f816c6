"""The row of chats in the DOM: a tab a chat, and what can be done with the one in view."""

from pyscript import ffi

from ui import controls, dom


class ChatBar:
    """Hidden until there is something to choose from; writes to the DOM only what changed.

    Args:
        strings: for the titles and the states.
    """

    def __init__(self, strings):
        self._strings = strings
        self._bar = dom.element("chats")
        self._list = dom.element("tabs")
        self._buttons = {name: dom.element(name) for name in controls.CHAT_BUTTONS}
        self._panel = dom.element("transcript")
        # By the chat's number.
        self._tabs = {}

    def show(self, chats):
        """Show all chats and the one in view."""
        chat = chats.in_view
        self._bar.hidden = not controls.are_chats_shown(len(chats), chat.is_empty)
        self._list.hidden = len(chats) == 1
        for number in list(self._tabs):
            if chats.find(number) is None:
                self._tabs.pop(number).remove()
        for other in chats:
            if other.number not in self._tabs:
                self._tabs[other.number] = _Tab(self._list, other.number)
            self._tabs[other.number].show(self._strings, other, other is chat)
        self._panel.setAttribute("aria-labelledby", _tab_id(chat.number))
        is_saving = bool(chat.saving)
        enabled = controls.chat_buttons(chat.state, chat.is_empty, is_saving, len(chats))
        for name, is_enabled in enabled.items():
            self._buttons[name].disabled = not is_enabled
        self._buttons["close"].hidden = len(chats) == 1

    def focus(self, number):
        """Put the keyboard's focus on a tab."""
        self._tabs[number].focus()

    def connect(self, on_choose, on_key):
        """Call `on_choose(number)` for a click on a tab, and `on_key(event)` for a key pressed there."""
        dom.listen(self._list, "click", lambda event: _choose(event, on_choose))
        dom.listen(self._list, "keydown", on_key)


class _Tab:
    def __init__(self, parent, number):
        self._node = dom.create("button", "tab")
        self._node.type = "button"
        self._node.id = _tab_id(number)
        self._node.dataset.session = str(number)
        self._node.setAttribute("role", "tab")
        self._node.setAttribute("aria-controls", "transcript")
        dot = dom.create("span", "dot")
        dot.setAttribute("aria-hidden", "true")
        title = dom.create("span", "title")
        title.dir = "auto"
        # The dot, for those who do not see it.
        state = dom.create("span", "unseen")
        self._node.append(dot, title, state)
        self._title = dom.TextSlot(title)
        self._state = dom.TextSlot(state)
        parent.append(self._node)
        self._shown = None

    def show(self, strings, chat, is_in_view):
        title = chat.title or strings.text("chat.untitled")
        state = controls.tab_state(chat.state, chat.end, chat.error is not None)
        self._title.show(title)
        self._state.show(", " + strings.text("chat.state." + state))
        if self._shown == (title, state, is_in_view):
            return
        was_in_view = self._shown is not None and self._shown[2]
        self._shown = (title, state, is_in_view)
        self._node.title = dom.visible(title)
        self._node.dataset.state = state
        self._node.setAttribute("aria-selected", "true" if is_in_view else "false")
        self._node.tabIndex = 0 if is_in_view else -1
        if is_in_view and not was_in_view:
            self._node.scrollIntoView(ffi.to_js({"block": "nearest", "inline": "nearest"}))

    def focus(self):
        self._node.focus()

    def remove(self):
        self._node.remove()


def _choose(event, on_choose):
    node = event.target.closest("[role=tab]")
    if node:
        on_choose(int(node.dataset.session))


def _tab_id(number):
    return "tab-" + str(number)
