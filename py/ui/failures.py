"""What the engine says went wrong, or was mended. All functions take the page."""

from ui import loading
from ui.page import now_ms
from ui.status import GPU_CODES


def notice(page, event):
    """Show a `notice`."""
    (page.chats.find(event["session"]) or page).notice = event
    page.render()


def error(page, event):
    """Act on an `error`, and show it where it belongs."""
    chat = page.chats.find(event["session"])
    if event["code"] == "E700":
        _crashed(page)
    elif event["session"] is None:
        if event["data"].get("cause") == "storage":
            # Nobody asked: the list is read with every model. Who saves is told.
            return
        _fail(page, event)
    elif chat is None:
        # Nobody looks at it any more; that it is not there is what was wanted.
        if event["code"] == "E606":
            page.chats.note_closed(event["session"])
        return
    elif event["request_id"] is None:
        chat = _fail_beside(page, chat, event)
    elif chat.awaits(event["request_id"]):
        page.break_off(chat, "error")
    if event["code"] in GPU_CODES and page.state == "empty":
        page.end = "gpu_lost"
    loading.shrink(page, event)
    (chat or page).error = event
    page.render()


def _fail(page, event):
    """The engine's own error, or that of a load."""
    code = event["code"]
    is_of_load = page.pending_source is not None and event["request_id"] in (None, page.client.load_id)
    if page.state == "starting" and code == "E900":
        # The engine did not start; the worker that is left can only be replaced.
        end_load(page, "error", "crashed")
    elif code == "E608":
        # The saved chats are no part of a load.
        return
    elif page.state == "starting" or is_of_load:
        # Without an adapter, E100 means that there never will be an engine.
        end_load(page, "error", "unsupported" if code == "E100" and not page.adapter else "empty")
    elif event["request_id"] is None:
        for chat in page.chats:
            page.break_off(chat, "error")


def _fail_beside(page, chat, event):
    """An error of what is no request: opening, saving, restoring. Returns the chat to show it in."""
    chat.saving = ""
    if chat.state == "opening" or (chat.state == "restoring" and event["code"] in ("E606", "E607")):
        # There never was such a session.
        page.view(lambda: page.chats.remove(chat))
        return page.chat
    if chat.state == "restoring":
        chat.enter("ready")
    return chat


def _crashed(page):
    for chat in page.chats:
        page.break_off(chat, "crashed")
        chat.answered = None
        chat.saving = ""
    page.model = {}
    page.memory.pool = None
    end_load(page, page.end, "crashed")
    if page.restarts.take(now_ms()):
        loading.start(page)


def end_load(page, end, state):
    """Note that no load is under way any more, why, and where that leaves all chats."""
    page.pending_source = None
    page.end = end
    page.enter(state)
