"""What the benchmark measures, and what its numbers mean. Imports on CPython for tests.

The page asks questions as a visitor would, in a session of its own: raw prompts of one-token words, greedy, nothing
reused, and the model cannot end the answer. For each length of prompt it asks once for nothing (the engine learns how
much it reads at a time) and then `samples` times; the numbers are medians.

Then a second question, behind the last prompt and its answer, of which the keys and values are kept: its time to the
first token is that of a second turn.

Two clocks: the page's, from the request to the first and the last piece of the answer as they arrive here, and the
engine's own, which leaves out the tokenizer and the way between page and worker. The speed of reading the prompt is
the prompt's tokens over the engine's time to the first token; the speed of writing is that of the tokens after the
first. Behind the answers the engine measures a step of each kind, see `clutch/engine/benchmark.py`: the bytes of a
token are those of the step behind the last answer, so the rates and the share of the limit are of it.
"""

# The longest needs a context of its own: load the model with `?context_length=8192`.
_PLAN = {"prompt_tokens": (32, 512, 2000, 8000), "answer_tokens": 128, "samples": 3, "chunk_tokens": 512}
# A software adapter writes a token a second.
_SOFTWARE_PLAN = {"prompt_tokens": (16, 64), "answer_tokens": 8, "samples": 1, "chunk_tokens": 32}
# With less room for an answer there is nothing to measure.
LEAST_ANSWER_TOKENS = 8
# Of the second question.
QUESTION_TOKENS = 16

# No step can be faster than its bytes at the card's bandwidth and its dispatches one behind the other, nor than
# Chromium's GPU process hands them on. Measured on an H200; see docs/performance.md.
DISPATCH_US = 1.9
HOST_DISPATCH_US = 5
_BANDWIDTHS_GB_PER_S = {"H200": 4300}

# Each is one token behind a space, in every vocabulary known here.
_WORDS = ("the", "a", "of", "in", "and", "to")


def plan(parameters, is_software):
    """Return what is to be measured, from the URL's parameters `bench_*`.

    Args:
        parameters: {name: text}.
        is_software: whether the adapter is a software adapter.
    """
    wanted = dict(_SOFTWARE_PLAN if is_software else _PLAN)
    lengths = [int(text) for text in parameters.get("bench_prompt_tokens", "").split(",") if _is_count(text)]
    if lengths:
        wanted["prompt_tokens"] = lengths
    for name in ("answer_tokens", "samples", "chunk_tokens"):
        text = parameters.get("bench_" + name, "")
        if _is_count(text):
            wanted[name] = int(text)
    wanted["prompt_tokens"] = list(wanted["prompt_tokens"])
    return wanted


def answer_room(n_prompt_tokens, n_answer_tokens, context_length):
    """Return how many tokens the answer may have, or None when the context is too short for this prompt."""
    room = min(n_answer_tokens, context_length - n_prompt_tokens)
    return room if room >= min(n_answer_tokens, LEAST_ANSWER_TOKENS) else None


def prompt_of(n_tokens, seed):
    """Return a text of so many tokens; another one for each seed."""
    # Numerical Recipes' generator; MicroPython's own would not give the same text again.
    state = seed
    words = []
    for _ in range(n_tokens):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        words.append(_WORDS[(state >> 16) % len(_WORDS)])
    return " " + " ".join(words)


def card(parameters, adapter):
    """Return what the limit is reckoned with; the bandwidth is None for a card that nobody knows.

    Plain Chromium does not name the card: the URL's `bandwidth_gb_per_s` does then.
    """
    text = parameters.get("bandwidth_gb_per_s", "")
    bandwidth = int(text) if _is_count(text) else None
    if bandwidth is None and adapter.get("vendor") == "nvidia":
        names = [name for name in _BANDWIDTHS_GB_PER_S if name in adapter.get("description", "")]
        bandwidth = _BANDWIDTHS_GB_PER_S[names[0]] if names else None
    return {"bandwidth_gb_per_s": bandwidth, "dispatch_us": DISPATCH_US, "host_dispatch_us": HOST_DISPATCH_US}


def limit_ms(n_dispatches, n_bytes, card):
    """Return how long a step takes at least; None when the card is not known."""
    if card["bandwidth_gb_per_s"] is None:
        return None
    on_card = n_bytes / card["bandwidth_gb_per_s"] / 1e6 + n_dispatches * card["dispatch_us"] / 1e3
    return max(on_card, n_dispatches * card["host_dispatch_us"] / 1e3)


def row(n_wanted, samples, step, card):
    """Return what is known of one length of prompt.

    Args:
        n_wanted: tokens of the prompt that were asked for.
        samples: as `ui/benchmark_run.py` takes them, at least one.
        step: the decode step behind the last answer, as the engine measured it.
        card: see `card`.
    """
    n_prompt = samples[-1]["prompt_tokens"]
    engine_ttft_ms = _median(samples, "engine_ttft_ms")
    step_ms = _median(samples, "step_ms")
    n_weight_bytes = sum([part["weight_bytes"] for part in step["rows"]])
    n_kv_bytes = sum([part["kv_bytes"] for part in step["rows"]])
    least_ms = limit_ms(step["dispatches"], n_weight_bytes + n_kv_bytes, card)
    return {
        "wanted_tokens": n_wanted,
        "prompt_tokens": n_prompt,
        "position": step["position"],
        "output_tokens": samples[-1]["output_tokens"],
        "ttft_ms": _median(samples, "ttft_ms"),
        "engine_ttft_ms": engine_ttft_ms,
        "prefill_tokens_per_s": n_prompt * 1000 / engine_ttft_ms if engine_ttft_ms else None,
        "decode_tokens_per_s": _median(samples, "tokens_per_s"),
        "engine_decode_tokens_per_s": 1000 / step_ms if step_ms else None,
        "step_ms": step_ms,
        "python_ms": _median(samples, "python_ms"),
        "dispatches": step["dispatches"],
        "weight_bytes": n_weight_bytes,
        "kv_bytes": n_kv_bytes,
        "gpu_ms": step["us"] / 1000 if step["us"] else None,
        "gb_per_s": (n_weight_bytes + n_kv_bytes) / step_ms / 1e6 if step_ms else None,
        "limit_ms": least_ms,
        "limit_share": least_ms / step_ms if least_ms and step_ms else None,
        # Not asked yet.
        "second_turn_ttft_ms": None,
        "samples": samples,
    }


def too_long(n_wanted, context_length):
    """Return the row of a prompt that the context is too short for."""
    return {"wanted_tokens": n_wanted, "skipped": "context", "context_length": context_length}


def rate_gb_per_s(part):
    """Return the rate at which a row of a step reads its bytes; None without a time, or without bytes."""
    n_bytes = part["weight_bytes"] + part["kv_bytes"]
    return n_bytes / part["us"] / 1e3 if part["us"] and n_bytes else None


def part_share(part, card):
    """Return the share that a row of a decode step reaches of its limit: its bytes and dispatches, on the card."""
    if part["us"] is None or card["bandwidth_gb_per_s"] is None:
        return None
    n_bytes = part["weight_bytes"] + part["kv_bytes"]
    return (n_bytes / card["bandwidth_gb_per_s"] / 1e3 + part["dispatches"] * card["dispatch_us"]) / part["us"]


def _median(samples, name):
    values = sorted([sample[name] for sample in samples if sample[name] is not None])
    if not values:
        return None
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def _is_count(text):
    return text.isdigit() and int(text) > 0
