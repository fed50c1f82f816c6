"""The default model against its recorded answers."""

import pytest

from tests.support.golden import LOGIT_TOLERANCE, ask, cases, first_logits, n_comparable

CASES = cases("smollm2")


@pytest.fixture(scope="module", params=CASES)
def answered(request, default_page):
    case = CASES[request.param]
    return case, ask(default_page, "smollm2", case)


def test_the_prompt_is_tokenized_as_the_reference_does(answered):
    case, answer = answered
    assert answer.prompt_ids == case["prompt_ids"]


def test_the_answer_is_the_reference_answer(answered):
    case, answer = answered
    n = n_comparable(case)
    assert answer.output_ids[:n] == case["output_ids"][:n]


def test_the_first_logits_are_the_reference_logits(answered):
    found, expected = first_logits(*answered)
    assert found == pytest.approx(expected, abs=LOGIT_TOLERANCE)
