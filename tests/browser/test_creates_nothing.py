"""A token of decode creates nothing on the GPU and submits once.

Answers of different lengths to the same prompt differ only in the number of decoded tokens, so the difference
of the counts is what those tokens cost.
"""

import pytest

from tests.support.worker_patch import COUNTING, counts, patch_worker

SHORT, LONG = 8, 40


@pytest.fixture(scope="module")
def counted_page(new_page):
    page = new_page()
    patch_worker(page.context, COUNTING)
    assert page.open("models/tiny.gguf", temperature=0) == "ready", page.error()
    return page


def cost(page, max_tokens):
    page.configure(max_tokens=max_tokens)
    before = counts(page.page)
    assert len(page.generate("Count.").output_ids) == max_tokens
    after = counts(page.page)
    page.reset()
    created = {name: n - before["created"].get(name, 0) for name, n in after["created"].items()}
    return after["submits"] - before["submits"], created


def test_a_decoded_token_creates_nothing_and_submits_once(counted_page):
    # The first answer may fill caches.
    cost(counted_page, SHORT)
    short_submits, short_created = cost(counted_page, SHORT)
    long_submits, long_created = cost(counted_page, LONG)
    assert long_created == short_created
    assert long_submits - short_submits == LONG - SHORT


def test_a_whole_answer_creates_nothing(counted_page):
    cost(counted_page, SHORT)
    _, created = cost(counted_page, SHORT)
    assert set(created.values()) == {0}


def test_the_counters_count(counted_page):
    counted = counts(counted_page.page)
    assert counted["submits"] > 0
    assert {"createBuffer", "createBindGroup", "createShaderModule"} <= counted["created"].keys()
