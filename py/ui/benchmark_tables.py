"""The benchmark's findings as tables of text. Imports on CPython for tests."""

from ui import benchmark, status

_SPEED_COLUMNS = ("prompt", "ttft", "prefill", "decode")
_TOKEN_COLUMNS = ("context", "step", "gpu", "python", "dispatches", "read", "rate", "limit")
_STEP_COLUMNS = ("kernel", "count", "each", "read", "rate")
COLUMNS = _SPEED_COLUMNS + _TOKEN_COLUMNS + _STEP_COLUMNS

_NONE = "–"
_MEGABYTE = 1_000_000


def tables(strings, rows, steps):
    """Return [(caption, [heading], [[text]])] of what has been found so far; the first column names the line.

    Args:
        strings: the sentences.
        rows, steps: of a `Run`.
    """
    found = []
    if rows:
        found.append(_speeds(strings, rows))
    measured = [row for row in rows if "skipped" not in row]
    if measured:
        found.append(_tokens(strings, measured))
    # Of the steps of one token the first and the last: a short context and a long one.
    decode = [step for step in steps if step["kind"] == "decode"]
    shown = decode[:1] + (decode[-1:] if len(decode) > 1 else [])
    shown += [step for step in steps if step["kind"] == "prefill"]
    return found + [_step(strings, step) for step in shown]


def number(value):
    """Return a number with about three digits, or a dash for None."""
    if value is None:
        return _NONE
    if value >= 100:
        return str(round(value))
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def share(value):
    """Return a share of 1 in percent, or a dash for None."""
    return _NONE if value is None else str(round(100 * value)) + " %"


def _speeds(strings, rows):
    lines = []
    for row in rows:
        if "skipped" in row:
            why = strings.text("benchmark.skipped", length=row["context_length"])
            lines.append([str(row["wanted_tokens"]), why])
            continue
        ttft_ms = row["ttft_ms"]
        lines.append(
            [
                str(row["prompt_tokens"]),
                _NONE if ttft_ms is None else f"{ttft_ms:.1f} ms" if ttft_ms < 100 else status.duration(ttft_ms),
                number(row["prefill_tokens_per_s"]),
                number(row["decode_tokens_per_s"]),
            ]
        )
    return strings.text("benchmark.speeds"), _headings(strings, _SPEED_COLUMNS), lines


def _tokens(strings, rows):
    lines = [
        [
            str(row["prompt_tokens"] + row["output_tokens"]),
            number(row["step_ms"]),
            number(row["gpu_ms"]),
            number(row["python_ms"]),
            str(row["dispatches"]),
            number((row["weight_bytes"] + row["kv_bytes"]) / _MEGABYTE),
            number(row["gb_per_s"]),
            share(row["limit_share"]),
        ]
        for row in rows
    ]
    return strings.text("benchmark.token"), _headings(strings, _TOKEN_COLUMNS), lines


def _step(strings, step):
    lines = []
    for part in step["rows"]:
        count = part["dispatches"]
        n_bytes = part["weight_bytes"] + part["kv_bytes"]
        lines.append(
            [
                part["name"],
                str(count),
                number(part["us"] / count if part["us"] is not None else None),
                number(n_bytes / count / _MEGABYTE) if n_bytes else "",
                number(benchmark.rate_gb_per_s(part)) if n_bytes else "",
            ]
        )
    key = "benchmark.step." + step["kind"]
    caption = strings.text(key, tokens=step["tokens"], position=step["position"])
    if step["us"] is None:
        caption += " " + strings.text("benchmark.no_timestamps")
    return caption, _headings(strings, _STEP_COLUMNS), lines


def _headings(strings, names):
    return [strings.text("benchmark.column." + name) for name in names]
