"""Turn what the recorder saw between two clicks into one answer; no browser in here."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

Event = tuple[float, dict[str, Any]]
"""When it came (ms since the page's navigation) and the message."""

Click = tuple[float, str]
"""When it came (same clock) and the button's id."""


_ASKING = ("generate", "continue")


@dataclass(frozen=True)
class Answer:
    """One answer as the user of the page met it; None where the page never said.

    `text` is read from the page, `streamed_text` is the deltas joined, after what a continued answer had before.
    On the page's clock: `ttft_ms` is from the click on Generate or Continue to the first delta, `stop_ms` from the
    click on Stop to `finished`, `stop_to_last_delta_ms` to the last delta (0 when none came after the click).
    `pool` is what the engine last said of its KV pool up to then, in pages, without the picture of it.
    """

    prompt_ids: list[int] | None = None
    output_ids: list[int] | None = None
    text: str | None = None
    streamed_text: str = ""
    finish_reason: str | None = None
    ttft_ms: float | None = None
    tokens_per_s: float | None = None
    stop_ms: float | None = None
    stop_to_last_delta_ms: float | None = None
    step_ms: float | None = None
    kv_length: int | None = None
    committed_tokens: int | None = None
    context_used: int | None = None
    context_length: int | None = None
    num_cached_tokens: int | None = None
    pool: dict[str, Any] | None = None
    ledger: dict[str, int] | None = None
    adapter: dict[str, Any] | None = None
    ready_ms: float | None = None
    top_logits: list[Any] | None = None
    errors: list[dict[str, Any]] = field(default_factory=list)
    notices: list[dict[str, Any]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the answer as plain data."""
        return asdict(self)


def read_answer(events: Sequence[Event], clicks: Sequence[Click], text: str | None) -> Answer:
    """Return the last answer of a page, from its last Generate or Continue on.

    Args:
        events: all events since the page was opened.
        clicks: all clicks since the page was opened.
        text: what the page shows as the answer.
    """
    asked_at = next((at for at, button in reversed(clicks) if button in _ASKING), 0.0)
    recent = [(at, message) for at, message in events if at >= asked_at]
    deltas = [(at, message) for at, message in recent if message["kind"] == "delta"]
    started = _last(recent, "started")
    finished_at, finished = _last_with_time(recent, "finished")
    usage = finished.get("usage", {})
    timings = finished.get("timings", {})
    stopped_at = next((at for at, button in reversed(clicks) if button == "stop" and at >= asked_at), None)
    return Answer(
        prompt_ids=started.get("prompt_ids"),
        output_ids=finished.get("output_ids"),
        text=text,
        streamed_text=started.get("text", "") + "".join(message["text"] for _, message in deltas),
        finish_reason=finished.get("reason"),
        ttft_ms=deltas[0][0] - asked_at if deltas else None,
        tokens_per_s=timings.get("tokens_per_s"),
        stop_ms=_elapsed_ms(stopped_at, finished_at),
        stop_to_last_delta_ms=_since_stop_ms(stopped_at, finished_at, deltas),
        step_ms=timings.get("step_ms"),
        kv_length=usage.get("kv_length"),
        committed_tokens=usage.get("committed_tokens"),
        context_used=usage.get("kv_length"),
        context_length=usage.get("context_length"),
        num_cached_tokens=usage.get("num_cached_tokens", started.get("num_cached_tokens")),
        pool=_pool(events, finished_at),
        ledger=finished.get("ledger"),
        adapter=_last(events, "capabilities").get("adapter"),
        ready_ms=ready_ms(events),
        top_logits=finished.get("top_logits"),
        errors=[_error(message) for _, message in recent if message["kind"] == "error"],
        notices=[_error(message) for _, message in recent if message["kind"] == "notice"],
    )


def ready_ms(events: Sequence[Event]) -> float | None:
    """Return when the engine first said that it is ready."""
    return next((at for at, message in events if message.get("state") == "ready"), None)


def _elapsed_ms(begun_at: float | None, ended_at: float | None) -> float | None:
    return None if begun_at is None or ended_at is None or ended_at < begun_at else ended_at - begun_at


def _since_stop_ms(stopped_at: float | None, finished_at: float | None, deltas: Sequence[Event]) -> float | None:
    if stopped_at is None or finished_at is None or finished_at < stopped_at:
        return None
    return max([0.0, *(at - stopped_at for at, _ in deltas)])


def _pool(events: Sequence[Event], ended_at: float | None) -> dict[str, Any] | None:
    until_then = [(at, message) for at, message in events if ended_at is None or at <= ended_at]
    pool = _last(until_then, "pool")
    return {name: value for name, value in pool.items() if name not in ("kind", "cells")} or None


def _last_with_time(events: Sequence[Event], kind: str) -> tuple[float | None, dict[str, Any]]:
    return next(((at, message) for at, message in reversed(events) if message["kind"] == kind), (None, {}))


def _last(events: Sequence[Event], kind: str) -> dict[str, Any]:
    return _last_with_time(events, kind)[1]


def _error(message: dict[str, Any]) -> dict[str, Any]:
    return {name: message[name] for name in ("code", "message", "hint", "data")}
