"""The default model against the reference: NumPy, float32 weights, float64 activations (tests/golden).

Where the two best logits are closer than 0.1, either token is right, so the comparison ends there.
"""

import json
from pathlib import Path

import pytest

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "smollm2_greedy.json").read_text(encoding="utf-8"))
CASES = {case["name"]: case for case in GOLDEN["prompts"]}
CLOSE_CALL = 0.1
LOGIT_TOLERANCE = 0.05
# A few more than the ten compared, for those that change places within the tolerance.
N_LOGITS = 16


def n_comparable(case):
    margins = case["margin_each_step"]
    return next((step for step, margin in enumerate(margins) if margin < CLOSE_CALL), len(margins))


@pytest.fixture(scope="module", params=CASES)
def answered(request, default_page):
    case = CASES[request.param]
    # One step past the last comparable one, but at least the first, for its logits.
    max_tokens = min(n_comparable(case) + 1, GOLDEN["max_new_tokens"])
    return case, ask(default_page, case, max_tokens)


def ask(page, case, max_tokens):
    """Type the prompt; only a conversation with a history has to come by the address, with a new load."""
    messages = case["messages"]
    if messages and len(messages) > 1:
        ready = page.open(messages=messages, max_tokens=max_tokens, temperature=0, top_logits=N_LOGITS)
        assert ready == "ready"
        return page.generate()
    page.reset()
    page.configure(max_tokens=max_tokens, raw=not messages)
    return page.generate(messages[0]["content"] if messages else case["prompt"])


def test_the_prompt_is_tokenized_as_the_reference_does(answered):
    case, answer = answered
    assert answer.prompt_ids == case["prompt_ids"]


def test_the_answer_is_the_reference_answer(answered):
    case, answer = answered
    n = n_comparable(case)
    assert answer.output_ids[:n] == case["output_ids"][:n]


def test_the_first_logits_are_the_reference_logits(answered):
    case, answer = answered
    found = dict(answer.top_logits)
    expected = dict(case["top10_last_prompt"])
    assert {token: found.get(token) for token in expected} == pytest.approx(expected, abs=LOGIT_TOLERANCE)
