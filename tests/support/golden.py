"""Recorded answers of real models (tests/golden/*_greedy.json), and how far an engine must agree with them.

The reference is NumPy with the weights dequantised to float32. Where the two best logits are closer than 0.1, either
token is right, so the comparison ends there.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.answers import Answer
from tests.support.page import ClutchPage

GOLDEN = Path(__file__).parents[1] / "golden"
CLOSE_CALL = 0.1
LOGIT_TOLERANCE = 0.05
# A few more than the ten compared, for those that change places within the tolerance.
N_LOGITS = 16


@cache
def recorded(model: str) -> dict[str, Any]:
    """Return the file of "smollm2" or "qwen25coder05b"."""
    return json.loads((GOLDEN / f"{model}_greedy.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def cases(model: str) -> dict[str, dict[str, Any]]:
    """Return its prompts by name."""
    return {case["name"]: case for case in recorded(model)["prompts"]}


def n_comparable(case: dict[str, Any]) -> int:
    """Return how many tokens of an answer have to be the recorded ones."""
    margins = case["margin_each_step"]
    return next((step for step, margin in enumerate(margins) if margin < CLOSE_CALL), len(margins))


def ask(page: ClutchPage, model: str, case: dict[str, Any], url: str | None = None) -> Answer:
    """Type the prompt; only a conversation with a history has to come by the address, with a new load of `url`."""
    # One step past the last comparable one, but at least the first, for its logits.
    max_tokens = min(n_comparable(case) + 1, recorded(model)["max_new_tokens"])
    messages = case["messages"]
    if messages and len(messages) > 1:
        ready = page.open(url, messages=messages, max_tokens=max_tokens, temperature=0, top_logits=N_LOGITS)
        assert ready == "ready"
        return page.generate()
    page.reset()
    page.configure(max_tokens=max_tokens, raw=not messages)
    return page.generate(messages[0]["content"] if messages else case["prompt"])


def first_logits(case: dict[str, Any], answer: Answer) -> tuple[dict[int, float | None], dict[int, float]]:
    """Return the logits behind the prompt, found and expected, by token."""
    found, expected = dict(answer.top_logits or []), dict(case["top10_last_prompt"])
    return {token: found.get(token) for token in expected}, expected
