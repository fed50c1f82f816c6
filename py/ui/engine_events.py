"""What the engine says: one function for each event of `clutch/protocol.py`. All of them take the page."""

import js

from ui.page import now_ms


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
    is_stale = page.state == "stopping" and state == "generating"
    # The engine passes through `empty` before it comes to the model that was asked for.
    is_passing = state == "empty" and page.pending_source is not None
    if is_stale or is_passing:
        return
    if state == "ready":
        page.set_numbers(dict(page.numbers, kv_length=event["kv_length"]))
        if page.errors.code in ("E601", "E602"):
            page.errors.clear()
    page.enter(state)


def _loaded(page, event):
    page.pending_source = None
    page.model = event["model"]
    page.set_numbers({})
    page.render()


def _started(page, event):
    if _is_current(page, event):
        page.exchange.start(len(event["prompt_ids"]))
        _count(page)


def _delta(page, event):
    if _is_current(page, event):
        page.exchange.append(event["text"], len(event["token_ids"]), now_ms())
        page.transcript.append(event["text"])
        _count(page)


def _finished(page, event):
    if not _is_current(page, event):
        return
    answer = page.exchange.answer
    if answer.text != event["text"]:
        js.console.error("The streamed text differs from the final one, which is shown.")
        answer.text = event["text"]
    answer.end = page.end = event["reason"]
    page.transcript.finish(answer)
    page.exchange = None
    page.set_numbers(
        {
            "tokens_per_s": event["timings"].get("tokens_per_s"),
            "ttft_ms": event["timings"].get("ttft_ms"),
            "kv_length": event["usage"].get("kv_length", 0),
        }
    )
    page.render()


def _error(page, event):
    if page.exchange is not None and event["request_id"] in (None, page.exchange.request_id):
        _end_exchange(page)
    if event["code"] == "E700":
        page.pending_source = None
        page.enter("crashed")
    elif page.state in ("starting", "loading") and event["request_id"] is None:
        page.pending_source = None
        # Before the engine is up, E100 means that it never will be.
        page.enter("unsupported" if event["code"] == "E100" and page.state == "starting" else "empty")
    page.errors.show(event)
    page.render()


def _end_exchange(page):
    """Keep what there is of the answer; without any, give the question back and leave no trace."""
    exchange, page.exchange = page.exchange, None
    page.end = "error"
    if exchange.has_text:
        exchange.answer.end = "error"
        page.transcript.finish(exchange.answer)
        return
    page.conversation.drop_last(2)
    page.transcript.drop_last(2)
    typed = page.prompt.text
    page.prompt.write(exchange.question.text + ("\n\n" + typed if not page.prompt.is_empty else ""))


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
    "error": _error,
}
