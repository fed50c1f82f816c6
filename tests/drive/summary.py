"""An answer as a few readable lines."""

from typing import Any

from tests.support.answers import Answer


def summary(answer: Answer) -> str:
    """Return the text, then the numbers, then the errors."""
    n_prompt, n_output = len(answer.prompt_ids or ()), len(answer.output_ids or ())
    numbers = {
        "ended": f"{answer.finish_reason or 'not'}; {n_prompt} prompt tokens, {n_output} new",
        "speed": f"{_number(answer.tokens_per_s)} tokens/s, {_number(answer.step_ms)} ms a step",
        "ready": f"{_number(answer.ready_ms)} ms after the page was opened",
        "first": f"{_number(answer.ttft_ms)} ms from Generate to the first token",
        "stopped": f"{_number(answer.stop_ms)} ms after the click",
        "cache": f"{answer.context_used} of {answer.context_length} used, {answer.num_cached_tokens} reused",
        "pool": _pool(answer.pool),
        "gpu": f"{answer.adapter}; {answer.ledger}",
    }
    lines = [answer.text or "(no text)", "", *(f"  {name:8} {value}" for name, value in numbers.items())]
    lines += [f"  notice   {notice['code']}: {notice['message']}" for notice in answer.notices]
    lines += [f"  error    {error['code']}: {error['message']} {error['hint']}" for error in answer.errors]
    return "\n".join(lines)


def _pool(pool: dict[str, Any] | None) -> str:
    if pool is None:
        return "-"
    counts = ", ".join(f"{pool[name]} {name}" for name in ("used", "shared", "cached", "free"))
    utilisation = pool["utilisation"]
    return f"{counts} of {pool['total']} pages; {'-' if utilisation is None else f'{utilisation:.1%}'} filled"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
