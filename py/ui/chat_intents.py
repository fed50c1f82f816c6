"""What the visitor wants of the chats as such: one function for each click. All of them take the page."""

import js

from ui import controls, dom, saved
from ui.chat import Chat


def new_chat(page):
    """Open an empty chat and show it; return it, or None after saying why not."""
    return _open(page, lambda number: Chat(number, controls.new_state(page.state)))


def fork(page):
    """Open a copy of the chat in view and show it."""
    source = page.chat
    if controls.chat_buttons(source.state, source.is_empty, False, len(page.chats))["fork"]:
        _open(page, source.fork, source)


def _open(page, make, source=None):
    code = controls.opening_refusal(len(page.chats))
    number = page.chats.free_number
    if code or number is None:
        # The last number is only free when the engine has closed its session.
        page.refuse(code or "E601")
        return None
    chat = make(number)
    if source is None:
        page.client.open_session(number)
    else:
        page.client.fork(number, source.number)
    page.view(lambda: page.chats.add(chat))
    page.prompt.focus()
    return chat


def switch(page, chat):
    """Show another chat."""
    if chat is not page.chat:
        page.view(lambda: page.chats.show(chat))


def close(page):
    """Close the chat in view, whatever it does."""
    chat = page.chat
    if len(page.chats) == 1:
        return
    state = controls.state_after_reset(chat.state, page.pending_source is not None)
    page.client.close_session(chat.number, is_stopping=state == "resetting")
    page.chats.await_closed(chat.number)
    page.view(lambda: page.chats.remove(chat))


def save(page):
    """Keep the chat in view in this browser."""
    chat = page.chat
    if not controls.chat_buttons(chat.state, chat.is_empty, bool(chat.saving), len(page.chats))["save"]:
        return
    chat.saving = saved.name_for(chat.title, _moment(), page.saved.names)
    page.client.save(chat.number, chat.saving, saved.page_of(chat), page.settings.keeps_cache)
    page.render()


def restore(page, name):
    """Bring a saved chat back, in a chat of its own."""
    if not page.model:
        page.refuse("E602")
        return
    is_unused = page.chat.is_empty and page.chat.state == "ready"
    chat = page.chat if is_unused else new_chat(page)
    if chat is None:
        return
    page.client.restore(chat.number, name)
    page.quieten()
    chat.enter("restoring")
    page.render()


def delete(page, name):
    """Throw a saved chat away."""
    page.client.delete_saved(name)


_BUTTONS = {"new-chat": new_chat, "fork": fork, "save": save, "close": close}


def connect(page):
    """Give every control its intent."""
    for name in controls.CHAT_BUTTONS:
        dom.listen(dom.element(name), "click", lambda _event, intent=_BUTTONS[name]: intent(page))
    page.chat_bar.connect(lambda number: _choose(page, number), lambda event: _press(page, event))
    page.saved.connect({"restore": lambda name: restore(page, name), "delete": lambda name: delete(page, name)})


def _choose(page, number):
    switch(page, page.chats.find(number))
    page.prompt.focus()


def _press(page, event):
    wish = controls.tab_key(event.key)
    if wish is None:
        return
    event.preventDefault()
    if wish == "close":
        close(page)
    else:
        switch(page, page.chats.wished(wish))
    page.chat_bar.focus(page.chat.number)


def _moment():
    now = js.Date.new()
    return now.getFullYear(), now.getMonth() + 1, now.getDate(), now.getHours(), now.getMinutes()
