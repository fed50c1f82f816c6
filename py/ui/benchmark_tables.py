"""The benchmark's findings as tables of text. Imports on CPython for tests."""

from ui import benchmark, status

_SPEED_COLUMNS = ("prompt", "ttft", "second", "prefill", "decode")
_STEP_COLUMNS = ("kernel", "count", "each", "read", "rate", "limit")
TOKEN_LINES = ("context", "step", "gpu", "python", "dispatches", "read", "rate", "limit")
COLUMNS = _SPEED_COLUMNS + _STEP_COLUMNS

_NONE = "–"
_MEGABYTE = 1_000_000


def tables(strings, rows, steps, card):
    """Return [(caption, [heading], [[text]])] of what has been found so far; the first column names the line.

    Args:
        strings: the sentences.
        rows, steps, card: of a `Run`.
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
    return found + [_step(strings, step, card) for step in shown]


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


def _time(ms):
    if ms is None:
        return _NONE
    return f"{ms:.1f} ms" if ms < 100 else status.duration(ms)


def _with(value, unit):
    return _NONE if value is None else number(value) + " " + unit


def _speeds(strings, rows):
    lines = []
    for row in rows:
        if "skipped" in row:
            why = strings.text("benchmark.skipped", length=row["context_length"])
            lines.append([str(row["wanted_tokens"]), why])
            continue
        lines.append(
            [
                str(row["prompt_tokens"]),
                _time(row["ttft_ms"]),
                _time(row["second_turn_ttft_ms"]),
                number(row["prefill_tokens_per_s"]),
                number(row["decode_tokens_per_s"]),
            ]
        )
    return strings.text("benchmark.speeds"), _headings(strings, _SPEED_COLUMNS), lines


def _tokens(strings, rows):
    """A column a context, for there are few of them and much to say of each."""
    cells = {
        "context": lambda row: str(row["position"]),
        "step": lambda row: _with(row["step_ms"], "ms"),
        "gpu": lambda row: _with(row["gpu_ms"], "ms"),
        "python": lambda row: _with(row["python_ms"], "ms"),
        "dispatches": lambda row: str(row["dispatches"]),
        "read": lambda row: _with((row["weight_bytes"] + row["kv_bytes"]) / _MEGABYTE, "MB"),
        "rate": lambda row: _with(row["gb_per_s"], "GB/s"),
        "limit": lambda row: share(row["limit_share"]),
    }
    lines = []
    for name in TOKEN_LINES:
        line = [strings.text("benchmark.token." + name)]
        line += [cells[name](row) for row in rows]
        lines.append(line)
    return strings.text("benchmark.token"), lines[0], lines[1:]


def _step(strings, step, card):
    # Reading a prompt is not bound by the bytes.
    has_limit = step["kind"] == "decode" and card["bandwidth_gb_per_s"] is not None
    lines = []
    for part in step["rows"]:
        count = part["dispatches"]
        n_bytes = part["weight_bytes"] + part["kv_bytes"]
        line = [
            part["name"],
            str(count),
            number(part["us"] / count if part["us"] is not None else None),
            number(n_bytes / count / _MEGABYTE) if n_bytes else "",
            number(benchmark.rate_gb_per_s(part)) if n_bytes else "",
        ]
        if has_limit:
            line.append(share(benchmark.part_share(part, card)))
        lines.append(line)
    key = "benchmark.step." + step["kind"]
    caption = strings.text(key, tokens=step["tokens"], position=step["position"])
    if step["us"] is None:
        caption += " " + strings.text("benchmark.no_timestamps")
    return caption, _headings(strings, _STEP_COLUMNS if has_limit else _STEP_COLUMNS[:-1]), lines


def _headings(strings, names):
    return [strings.text("benchmark.column." + name) for name in names]
