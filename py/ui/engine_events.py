"""What the engine says: one function for each event of `clutch/protocol.py`.

Those about a session take the page, its chat and the event; a session whose chat is closed already is not heard.
"""

import js

from ui import failures, saved
from ui.page import now_ms


def handle(page, event):
    """Bring the page up to date with one event."""
    page.benchmark.hear(event)
    kind = event["kind"]
    if kind in _OF_ENGINE:
        _OF_ENGINE[kind](page, event)
        return
    chat = page.chats.find(event["session"])
    if chat is not None:
        _OF_CHAT[kind](page, chat, event)


# The engine's ------------------------------------------------------------------------------------------------------


def _capabilities(page, event):
    page.adapter = event["adapter"]
    page.render()


def _progress(page, event):
    session = event.get("session")
    for chat in page.chats:
        if session in (None, chat.number):
            chat.progress = event
    page.render_status()


def _loaded(page, event):
    page.pending_source = None
    page.model = event["model"]
    page.self_test = event["self_test"]
    page.kernels = event["kernels"]
    facts = {name: event[name] for name in ("timings", "memory", "ledger")}
    # Of a later load the page's life says nothing.
    page.load_facts = dict(facts, ready_ms=None if page.load_facts else now_ms())
    # Not before: what goes wrong with it must not be taken for the end of the load.
    page.client.list_saved()
    page.render()


def _pool(page, event):
    page.memory.pool = event
    page.render_status()


def _closed(page, event):
    page.chats.note_closed(event["session"])


def _saved(page, event):
    page.saved.entries = event["sessions"]
    names = [entry["name"] for entry in event["sessions"]]
    for chat in page.chats:
        if chat.saving and chat.saving in names:
            chat.saving = ""
            chat.notice = {"code": "saved", "data": {}}
    page.render()


def _finished(page, event):
    if event["request_id"] == page.client.load_id:
        failures.end_load(page, "load_stopped", "empty")
        return
    chat = page.chats.find(event["session"])
    if chat is not None and chat.awaits(event["request_id"]):
        _end_answer(page, chat, event)


# A chat's ----------------------------------------------------------------------------------------------------------


def _state(page, chat, event):
    state = event["state"]
    # A Stop is on its way to a worker that has not read it yet.
    is_stale = chat.state == "stopping" and state in ("generating", "loading", "lost")
    # The engine passes through `empty` before it comes to the model that was asked for.
    is_passing = state == "empty" and page.pending_source is not None
    # It is there, and what it is to hold is still being read.
    is_early = chat.state == "restoring" and state == "ready"
    if is_stale or is_passing or is_early:
        return
    if state == "ready":
        chat.numbers = dict(chat.numbers, kv_length=event["kv_length"])
        for place in (page, chat):
            if place.error and place.error["code"] in ("E601", "E602"):
                place.error = None
    elif state == "empty":
        _forget_model(page, chat)
    chat.enter(state)
    page.render()


def _forget_model(page, chat):
    if page.model:
        # Nobody gave it up: the GPU was lost, and is not coming back by itself.
        page.end = "gpu_lost"
    page.model = {}
    page.self_test = page.kernels = {}
    page.memory.pool = None
    chat.answered = None


def _started(page, chat, event):
    if chat.awaits(event["request_id"]):
        chat.exchange.start(len(event["prompt_ids"]), event["num_cached_tokens"], event["text"])
        page.transcript.replace(chat.exchange.answer)
        _count(page, chat)


def _trimmed(page, chat, event):
    if not chat.awaits(event["request_id"]):
        return
    count = event["dropped_messages"]
    chat.exchange.shorten(event["prompt_tokens"])
    # Each turn leaves them out again; that is no news.
    if count > chat.conversation.n_left_out:
        chat.exchange.answer.n_left_out = count
        chat.notice = {"code": "trimmed", "data": {"count": count}}
        page.transcript.mark(chat.exchange.answer)
        page.render()
    _count(page, chat)


def _delta(page, chat, event):
    if chat.awaits(event["request_id"]):
        exchange = chat.exchange
        exchange.append(event["text"], len(event["token_ids"]), now_ms())
        page.transcript.append(exchange.answer, event["text"])
        _count(page, chat)


def _end_answer(page, chat, event):
    exchange = chat.exchange
    answer = exchange.answer
    if answer.text != event["text"]:
        js.console.error("The streamed text differs from the final one, which is shown.")
        answer.text = event["text"]
    exchange.finish(len(event["output_ids"]), event["reason"])
    chat.end = event["reason"]
    page.transcript.finish(answer)
    chat.answered, chat.exchange = exchange, None
    chat.numbers = dict(
        exchange.prompt_numbers(),
        tokens_per_s=event["timings"].get("tokens_per_s"),
        ttft_ms=event["timings"].get("ttft_ms"),
        kv_length=event["usage"].get("kv_length", 0),
    )
    page.render()


def _restored(page, chat, event):
    saved.restore(chat, event)
    chat.enter("ready")
    if chat is page.chat:
        page.transcript.show(chat.conversation.messages, False)
    page.render()


def _count(page, chat):
    chat.numbers = chat.exchange.numbers(now_ms())
    if chat is page.chat:
        page.render_status()


_OF_ENGINE = {
    "capabilities": _capabilities,
    "progress": _progress,
    "loaded": _loaded,
    "pool": _pool,
    "closed": _closed,
    "saved": _saved,
    "finished": _finished,
    "heartbeat": lambda _page, _event: None,
    "notice": failures.notice,
    "error": failures.error,
}
_OF_CHAT = {
    "state": _state,
    "opened": lambda _page, _chat, _event: None,
    "benchmarked": lambda _page, _chat, _event: None,
    "started": _started,
    "trimmed": _trimmed,
    "delta": _delta,
    "restored": _restored,
}
