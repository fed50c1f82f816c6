"""The benchmark in its panel: measures, leaves the chats alone, and can be stopped."""

import json

import pytest

from tests.browser.conftest import TINY

PLAN = {"bench_prompt_tokens": "16,40,900", "bench_answer_tokens": 6, "bench_samples": 1, "bench_chunk_tokens": 16}
STATE = "document.getElementById('benchmark').dataset.state"
TIMEOUT_MS = 60_000


@pytest.fixture(scope="module")
def page(open_page):
    page = open_page(TINY, temperature=0, max_tokens=24, seed=1, bandwidth_gb_per_s=100, **PLAN)
    page.page.click("#benchmark summary")
    return page


def ended(page):
    page.page.wait_for_function(f"() => !['idle', 'running'].includes({STATE})", timeout=TIMEOUT_MS)
    return page.page.evaluate(STATE)


def found(page):
    return json.loads(page.page.text_content("#benchmark-json"))


def test_measures_and_leaves_the_chats_as_they_were(page):
    answer = page.generate("Hello")
    page.page.click("#benchmark-start")
    assert page.page.evaluate(STATE) == "running"
    # Nobody else uses the GPU meanwhile.
    page.start("and then?")
    assert page.error()["code"] == "E601"
    assert ended(page) == "done"
    short, long, skipped = found(page)["rows"]
    assert (short["prompt_tokens"], long["prompt_tokens"], short["output_tokens"]) == (16, 40, 6)
    for row in (short, long):
        assert row["ttft_ms"] >= row["engine_ttft_ms"] > 0
        assert row["second_turn_ttft_ms"] > 0
        assert row["decode_tokens_per_s"] > 0 and row["python_ms"] > 0
        assert 0 < row["limit_share"] < 1
        assert row["kv_bytes"] > 0 and row["weight_bytes"] > 0
    assert long["kv_bytes"] > short["kv_bytes"]
    assert skipped == {"wanted_tokens": 900, "skipped": "context", "context_length": 512}
    prefill, *decodes = found(page)["steps"]
    assert (prefill["kind"], prefill["tokens"]) == ("prefill", 16)
    assert [step["position"] for step in decodes] == [16 + 5, 40 + 5]
    for step in (prefill, *decodes):
        assert sum(row["dispatches"] for row in step["rows"]) == step["dispatches"]
        # SwiftShader has timestamps.
        assert all(row["us"] > 0 for row in step["rows"])
    assert page.shown() == [answer.text] and len(page.chats()) == 1
    assert page.page.locator("#benchmark table").count() == 5
    page.page.click("#dismiss")
    assert page.generate().finish_reason == "length"


def test_all_of_it_can_be_copied(page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.page.click("#benchmark-copy")
    page.page.wait_for_function("() => document.getElementById('benchmark-status').textContent === 'Copied.'")
    assert json.loads(page.page.evaluate("navigator.clipboard.readText()")) == found(page)


def test_a_stop_ends_it_and_the_page_goes_on(page):
    page.page.click("#benchmark-start")
    page.page.click("#benchmark-stop")
    assert ended(page) == "stopped"
    page.reset()
    assert page.generate("Hello").finish_reason == "length"
    # Its session is closed, so that the number is free again.
    page.page.click("#benchmark-start")
    assert ended(page) == "done"
    assert [event["session"] for _, event in page.events("closed")] == [1, 1, 1]
