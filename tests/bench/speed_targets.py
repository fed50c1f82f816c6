"""The bounds that issue 5 sets for speed, by the shape of the model; other models have none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.bench.kv_target import Target

_SPARE_BYTES = 64_000_000
_MEMORY_MARGIN = 1.05

Found = Mapping[str, Any]


@dataclass(frozen=True)
class Bounds:
    """What a shape should reach on one NVIDIA H200 in Chrome 156.

    Args:
        decode: least tokens/s at a short context.
        prefill: least tokens/s of a prompt of 2,000 tokens.
        ttft_ms: most, by the prompt's tokens.
        ready_ms: most for a warm load of the page, or None.
    """

    decode: float
    prefill: float
    ttft_ms: Mapping[int, float]
    ready_ms: float | None


# By (layers, vocabulary): SmolLM2-135M and DeepSeek-R1-Distill-Qwen-1.5B.
_BOUNDS = {
    (30, 49152): Bounds(850, 40_000, {32: 10, 512: 20, 2000: 60}, 1300),
    (28, 151936): Bounds(800, 10_000, {32: 20, 512: 60, 2000: 220}, None),
}


def targets(page: Found, ready_ms: Sequence[float]) -> list[Target]:
    """Return the bounds beside what was found.

    Args:
        page: the JSON of the page's benchmark.
        ready_ms: of the loads beforehand, the last the warmest.
    """
    model = page["model"]
    bounds = _BOUNDS.get((model["n_layers"], model["vocab_size"]))
    if bounds is None:
        return []
    rows = {row["wanted_tokens"]: row for row in page["rows"] if "skipped" not in row}
    found = [
        *_of_decode(bounds, rows, model["n_layers"]),
        *_of_prefill(bounds, rows),
        ("warm load", bounds.ready_ms, ready_ms[-1] if ready_ms else None, True, " ms"),
        ("GPU bytes over weights, KV and 64 MB", _MEMORY_MARGIN, _memory(page["load"]), True, "x"),
    ]
    return [
        Target(what, wanted, value, is_most, unit)
        for what, wanted, value, is_most, unit in found
        if wanted is not None and value is not None
    ]


_Bound = tuple[str, float | None, float | None, bool, str]


def _of_decode(bounds: Bounds, rows: Mapping[int, Found], n_layers: int) -> list[_Bound]:
    short, long = rows.get(32), rows.get(8000)
    if short is None:
        return []
    speed = short["decode_tokens_per_s"]
    lost = 1 - long["decode_tokens_per_s"] / speed if long and long["decode_tokens_per_s"] and speed else None
    return [
        ("decode, short context", bounds.decode, speed, False, " tok/s"),
        ("decode, lost at 8,000 tokens", 0.25, lost, True, "%"),
        ("share of the limit", 0.8, short["limit_share"], False, "%"),
        ("dispatches of a step", 6 * n_layers + 3, short["dispatches"], True, ""),
        ("Python's own time of a token", 0.3, short["python_ms"], True, " ms"),
    ]


def _of_prefill(bounds: Bounds, rows: Mapping[int, Found]) -> list[_Bound]:
    times: list[_Bound] = [
        (f"time to the first token, {n_tokens} tokens", wanted, rows[n_tokens]["ttft_ms"], True, " ms")
        for n_tokens, wanted in bounds.ttft_ms.items()
        if n_tokens in rows
    ]
    if 2000 not in rows:
        return times
    long = rows[2000]
    second = long["second_turn_ttft_ms"]
    return [
        ("prefill, 2,000 tokens", bounds.prefill, long["prefill_tokens_per_s"], False, " tok/s"),
        *times,
        ("second turn of the first, 2,000 tokens", 0.3, second and second / long["ttft_ms"], True, "%"),
    ]


def _memory(load: Found) -> float:
    memory = load["memory"]
    return float(load["ledger"]["bytes"] / (memory["weights"] + memory["kv"] + _SPARE_BYTES))
