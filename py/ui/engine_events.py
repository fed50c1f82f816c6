"""What the engine says: one function for each event of `clutch/protocol.py`. All of them take the page."""

import js

from ui import loading
from ui.page import now_ms
from ui.status import GPU_CODES


def handle(page, event):
    """Bring the page up to date with one event."""
    _HANDLERS[event["kind"]](page, event)


def _capabilities(page, event):
    page.adapter = event["adapter"]
    page.render()


def _progress(page, event):
    page.progress = event
    page.render_status()


def _state(page, event):
    state = event["state"]
    # A Stop is on its way to a worker that has not read it yet.
    is_stale = page.state == "stopping" and state in ("generating", "loading", "lost")
    # The engine passes through `empty` before it comes to the model that was asked for.
    is_passing = state == "empty" and page.pending_source is not None
    if is_stale or is_passing:
        return
    if state == "ready":
        page.set_numbers(dict(page.numbers, kv_length=event["kv_length"]))
        if page.errors.code in ("E601", "E602"):
            page.errors.clear()
    elif state == "empty":
        _forget_model(page)
    page.enter(state)


def _forget_model(page):
    if page.model:
        # Nobody gave it up: the GPU was lost, and is not coming back by itself.
        page.end = "gpu_lost"
    page.model = {}
    page.self_test = {}
    page.answered = None


def _loaded(page, event):
    page.pending_source = None
    page.model = event["model"]
    page.self_test = event["self_test"]
    page.set_numbers(page.numbers)
    page.render()


def _started(page, event):
    if _is_current(page, event):
        page.exchange.start(len(event["prompt_ids"]), event["text"])
        page.transcript.replace(event["text"])
        _count(page)


def _delta(page, event):
    if _is_current(page, event):
        page.exchange.append(event["text"], len(event["token_ids"]), now_ms())
        page.transcript.append(event["text"])
        _count(page)


def _finished(page, event):
    if event["request_id"] == page.client.load_id:
        _end_load(page, "load_stopped", "empty")
    if not _is_current(page, event):
        return
    answer = page.exchange.answer
    if answer.text != event["text"]:
        js.console.error("The streamed text differs from the final one, which is shown.")
        answer.text = event["text"]
    page.exchange.finish(len(event["output_ids"]), event["reason"])
    page.end = event["reason"]
    page.transcript.finish(answer)
    page.answered, page.exchange = page.exchange, None
    page.set_numbers(
        {
            "tokens_per_s": event["timings"].get("tokens_per_s"),
            "ttft_ms": event["timings"].get("ttft_ms"),
            "kv_length": event["usage"].get("kv_length", 0),
        }
    )
    page.render()


def _notice(page, event):
    page.notices.show(event)


def _error(page, event):
    code = event["code"]
    if code == "E700":
        _crashed(page)
    elif page.state == "starting" and code == "E900":
        # The engine did not start; the worker that is left can only be replaced.
        _end_load(page, "error", "crashed")
    elif page.state == "starting" or (
        page.pending_source is not None and event["request_id"] in (None, page.client.load_id)
    ):
        # Without an adapter, E100 means that there never will be an engine.
        _end_load(page, "error", "unsupported" if code == "E100" and not page.adapter else "empty")
    elif page.exchange is not None and event["request_id"] in (None, page.exchange.request_id):
        page.break_off("error")
    if code in GPU_CODES and page.state == "empty":
        page.end = "gpu_lost"
    loading.shrink(page, event)
    page.errors.show(event)
    page.render()


def _crashed(page):
    page.break_off("crashed")
    page.answered = None
    page.model = {}
    _end_load(page, page.end, "crashed")
    if page.restarts.take(now_ms()):
        loading.start(page)


def _end_load(page, end, state):
    page.pending_source = None
    page.end = end
    page.enter(state)


def _is_current(page, event):
    return page.exchange is not None and page.exchange.request_id == event["request_id"]


def _count(page):
    page.set_numbers(page.exchange.numbers(now_ms()))
    page.render_status()


_HANDLERS = {
    "capabilities": _capabilities,
    "progress": _progress,
    "state": _state,
    "loaded": _loaded,
    "started": _started,
    "delta": _delta,
    "finished": _finished,
    "heartbeat": lambda _page, _event: None,
    "notice": _notice,
    "error": _error,
}
