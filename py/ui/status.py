"""What the status bar says: pure functions of the page's facts. Imports on CPython for tests."""

PHASES = (
    "probing",
    "starting_python",
    "reading_header",
    "reading_weights",
    "compiling",
    "warming_up",
    "prefill",
    "benchmark",
)
REASONS = ("stop", "length", "abort", "context_full", "repetition", "confident", "error")

# How the kernels were chosen.
ORIGINS = ("default", "tuned", "kept")

# What the engine says when the GPU is gone or silent.
GPU_CODES = ("E500", "E501")
# Ends that leave no model behind.
LOAD_REASONS = ("load_stopped", "gpu_lost", "too_large")

_PHASE_STATES = ("starting", "loading", "generating", "lost")
_KILOBYTE = 1000
_MEGABYTE = 1_000_000
_GIGABYTE = 1_000_000_000


def shown_state(state, is_stop_slow):
    """Return the state whose sentence is shown: a Stop that takes long has one of its own."""
    return "still_stopping" if state == "stopping" and is_stop_slow else state


def status_line(strings, state, progress, is_writing, end):
    """Return the one honest sentence about what is being done.

    Args:
        strings: the sentences.
        state: the page's state, or what `shown_state` made of it.
        progress: the last `progress` event of this state, or None.
        is_writing: the answer has begun.
        end: why the last answer or load ended, or "".
    """
    if state == "generating" and is_writing:
        return strings.text("status.writing")
    if state in _PHASE_STATES and progress is not None:
        count = _count(progress["done"], progress["total"], progress["unit"])
        parts = [strings.text("phase." + progress["phase"]), count]
        if state == "lost":
            parts.insert(0, strings.text("status.lost"))
        return " ".join([part for part in parts if part])
    if (state == "ready" and end in REASONS) or (state == "empty" and end in LOAD_REASONS):
        return strings.text("status.ended." + end)
    return strings.text("status." + state)


def phase_line(strings, state, progress, is_writing, end):
    """Return the same sentence without its counter: for a screen reader, which should not read each step."""
    if progress is not None:
        progress = {"phase": progress["phase"], "done": 0, "total": 0, "unit": ""}
    return status_line(strings, state, progress, is_writing, end)


def progress_fraction(state, progress, is_writing):
    """Return 0..1 for the bar, -1 for a bar without an end, None for no bar."""
    if state in ("stopping", "resetting"):
        return -1
    if state not in _PHASE_STATES or (state == "generating" and is_writing):
        return None
    if progress is None or progress["total"] <= 0:
        return -1
    return min(1, max(0, progress["done"] / progress["total"]))


def numbers_line(strings, numbers):
    """Return the parts of the numbers that are known.

    Args:
        strings: the sentences.
        numbers: of tokens_per_s, ttft_ms, n_new with n_reused (tokens of the prompt), kv_length with context_length.
    """
    parts = []
    if numbers.get("tokens_per_s"):
        parts.append(strings.text("numbers.speed", value=_rate(numbers["tokens_per_s"])))
    if numbers.get("ttft_ms") is not None:
        parts.append(strings.text("numbers.ttft", value=duration(numbers["ttft_ms"])))
    if numbers.get("n_new") is not None:
        key = "numbers.prompt_reused" if numbers["n_reused"] else "numbers.prompt"
        parts.append(strings.text(key, new=numbers["n_new"], reused=numbers["n_reused"]))
    if numbers.get("context_length"):
        used = numbers.get("kv_length", 0)
        parts.append(strings.text("numbers.context", used=used, length=numbers["context_length"]))
    return parts


def model_line(model):
    """Return the name, format and size of a loaded model."""
    parts = [model.get("name"), model.get("quantisation")]
    if model.get("size_bytes"):
        parts.append(size(model["size_bytes"]))
    return " · ".join([str(part) for part in parts if part])


def adapter_line(adapter):
    """Return the name of the GPU as far as the browser tells."""
    description = adapter.get("description") or adapter.get("device")
    names = [description] if description else [adapter.get("vendor"), adapter.get("architecture")]
    return " ".join([str(name) for name in names if name])


def self_test_line(strings, self_test):
    """Return what the known-answer run after the load found; "" without one."""
    verdict = self_test.get("verdict")
    if not verdict:
        return ""
    return strings.text("self_test.passed" if verdict == "passed" else "self_test.other", verdict=verdict)


def kernels_line(strings, kernels):
    """Return which kernels were chosen and how; "" without a model."""
    if not kernels:
        return ""
    origin = strings.text("kernels." + kernels["origin"], duration=duration(kernels["tuning_ms"]))
    return strings.text("kernels.line", recipe=kernels["recipe"], origin=origin)


def duration(ms):
    """Return a time with its unit."""
    return f"{round(ms)} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


def size(n_bytes):
    """Return a size with its unit."""
    if n_bytes >= _GIGABYTE:
        return f"{n_bytes / _GIGABYTE:.1f} GB"
    if n_bytes >= _MEGABYTE:
        return f"{round(n_bytes / _MEGABYTE)} MB"
    return f"{max(1, round(n_bytes / _KILOBYTE))} kB"


def _rate(tokens_per_s):
    return f"{tokens_per_s:.1f}" if tokens_per_s < 100 else str(round(tokens_per_s))


def _count(done, total, unit):
    if total <= 0:
        return ""
    if unit != "bytes":
        return f"{int(done)}/{int(total)}"
    count = f"{done / _GIGABYTE:.1f}" if total >= _GIGABYTE else str(round(done / _MEGABYTE))
    return count + "/" + size(total)
