"""Samples become measures, JSON and a Markdown table."""

import json

from tests.bench.prompts import words, words_for
from tests.bench.report import MEASURES, Phase, Report
from tests.bench.table import table

STOPPED = {
    "missed": False,
    "prompt_tokens": 40,
    "stop_to_last_token_ms": 0,
    "stop_to_acknowledged_ms": 8.25,
    "tokens_after_stop": 2,
    "step_ms": None,
    "chunk_ms": [10, 30, 20],
}


def phase():
    found = Phase("prefill")
    found.add(STOPPED)
    found.add({"missed": False, "reset_busy_ms": 5.0})
    return found


def report():
    return Report(1, 0, {"vendor": "acme", "architecture": "x1"}, "156.0", {"name": "Tiny"}, [phase()])


def test_lists_are_joined_and_nothing_is_no_sample():
    spreads = phase().spreads()
    assert (spreads["chunk_ms"].n, spreads["chunk_ms"].p50, spreads["chunk_ms"].max) == (3, 20, 30)
    assert spreads["reset_busy_ms"].n == spreads["tokens_after_stop"].n == 1
    assert "step_ms" not in spreads and "reset_idle_ms" not in spreads


def test_measures_keep_the_order_of_the_table():
    names = list(phase().spreads())
    assert names == [name for name in MEASURES if name in names]


def test_prompt_lengths_are_a_range():
    found = phase()
    found.add({"prompt_tokens": 42})
    found.add({"prompt_tokens": 39})
    assert found.prompt_tokens == (39, 42)


def test_json_names_every_measure():
    found = json.loads(json.dumps(report().to_json()))
    assert found["phases"]["prefill"]["measures"]["stop_to_acknowledged_ms"] == {
        "n": 1,
        "p50": 8.25,
        "p95": 8.25,
        "max": 8.25,
    }
    assert (found["chromium"], found["adapter"]["vendor"], found["faults"]) == ("156.0", "acme", [])


def test_the_table_has_a_row_a_measure_and_units():
    text = table(report())
    assert text.startswith("acme x1; Chromium 156.0; Tiny")
    assert "| prefill: 40 prompt tokens | p50 | p95 | max | n |" in text
    assert "| Stop: click to acknowledgement | 8.2 ms | 8.2 ms | 8.2 ms | 1 |" in text
    assert "| Stop: tokens shown after the click | 2 | 2 | 2 | 1 |" in text


def test_faults_end_the_table():
    found = report()
    found.take_faults(["console error: x"])
    assert table(found).endswith("FAULT console error: x")


def test_prompts_are_as_long_as_asked():
    assert len(words(12).split()) == 12
    assert words(12).startswith(words(5))
    # 16 words that made 50 tokens have 34 around them.
    assert words_for(200, 16, 50) == 166
    assert words_for(10, 16, 50) == 1
