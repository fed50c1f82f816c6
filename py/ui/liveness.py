"""Ties the worker's life to the page's: looks after a silent worker, and takes it along when the page goes."""

from pyscript import document, ffi, window

from ui import dom, loading, pulse


def connect(page):
    """Begin to tick."""
    window.setInterval(ffi.create_proxy(lambda *_: _tick(page)), pulse.TICK_MS)
    dom.listen(document, "visibilitychange", lambda _event: page.pulse.forgive())
    dom.listen(document, "resume", lambda _event: page.pulse.forgive())
    # Through `pyscript.window` the method would lose its `this` (measured).
    view = document.defaultView
    dom.listen(view, "pageshow", lambda event: _show(page, event.persisted))
    # The browser would end the worker too, but when it pleases; the GPU's memory is wanted at once.
    dom.listen(view, "pagehide", lambda _event: page.client.close())


def _tick(page):
    if page.pulse.tick(page.state):
        page.client.hang()
    page.render_status()


def _show(page, is_restored):
    page.pulse.forgive()
    if is_restored:
        # Back from the browser's cache, and `pagehide` has ended the worker.
        for chat in page.chats:
            page.break_off(chat, "crashed")
        loading.start(page)
