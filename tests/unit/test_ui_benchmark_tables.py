"""The benchmark's tables: every line as long as its headings, and nothing shown that was not measured."""

from pathlib import Path

import pytest

from ui import benchmark
from ui.benchmark_tables import number, share, tables
from ui.strings import load

STRINGS = load(str(Path(__file__).resolve().parents[2] / "static" / "strings"), "en")
CARD = {"bandwidth_gb_per_s": 4300, "dispatch_us": 1.9, "host_dispatch_us": 5}
UNKNOWN = dict(CARD, bandwidth_gb_per_s=None)
GATE_UP = {"name": "gate_up", "dispatches": 30, "weight_bytes": 43_000_000, "kv_bytes": 0, "us": 134.0}
SAMPLE_KERNEL = {"name": "sample", "dispatches": 1, "weight_bytes": 0, "kv_bytes": 0, "us": 5.0}
SAMPLE = {
    "prompt_tokens": 32,
    "output_tokens": 5,
    "ttft_ms": 10.0,
    "tokens_per_s": 912.0,
    "engine_ttft_ms": 8.0,
    "step_ms": 1.0,
    "python_ms": 0.25,
}


def step(kind="decode", position=36, us=139.0):
    rows = [GATE_UP, SAMPLE_KERNEL] if us else [dict(GATE_UP, us=None), dict(SAMPLE_KERNEL, us=None)]
    return {"kind": kind, "position": position, "tokens": 1, "dispatches": 31, "us": us, "rows": rows}


def row(card=CARD, **changes):
    return benchmark.row(32, [dict(SAMPLE, **changes)], step(), card)


def test_nothing_found_is_no_table():
    assert tables(STRINGS, [], [], CARD) == []


@pytest.mark.parametrize("card", [CARD, UNKNOWN])
def test_every_line_has_a_cell_a_heading(card):
    found = tables(STRINGS, [row(card)], [step("prefill", 0), step()], card)
    assert len(found) == 4
    for caption, headings, lines in found:
        assert caption and lines
        assert {len(line) for line in lines} == {len(headings)}
        assert all(isinstance(cell, str) for line in lines for cell in line)


def test_the_numbers_of_a_length():
    (_, _, [speeds]), (_, contexts, lines) = tables(STRINGS, [row()], [], CARD)
    assert speeds == ["32", "10.0 ms", "–", "4000", "912"]
    assert contexts[1:] == ["36"]
    assert [line[1] for line in lines] == ["1.00 ms", "0.14 ms", "0.25 ms", "31", "43.0 MB", "43.0 GB/s", "16 %"]


def test_what_is_not_known_is_a_dash():
    changes = {"ttft_ms": None, "tokens_per_s": None, "step_ms": None, "python_ms": None}
    (_, _, [speeds]), (_, _, lines) = tables(STRINGS, [row(UNKNOWN, **changes)], [], UNKNOWN)
    assert speeds == ["32", "–", "–", "4000", "–"]
    assert [line[1] for line in lines] == ["–", "0.14 ms", "–", "31", "43.0 MB", "–", "–"]


def test_a_context_that_is_too_short_is_said():
    ((_, headings, [line]),) = tables(STRINGS, [benchmark.too_long(8000, 2048)], [], CARD)
    assert line == ["8000", "context too short (2048)"] and len(headings) == 5


def test_the_kernels_of_a_step():
    ((caption, _, lines),) = tables(STRINGS, [], [step()], CARD)
    assert "36" in caption
    # By hand: 134 us for 30, 43 MB for 30, in 134 us 321 GB/s; of its limit of 67 us a half.
    assert lines[0] == ["gate_up", "30", "4.47", "1.43", "321", "50 %"]
    assert lines[1][:5] == ["sample", "1", "5.00", "", ""]


def test_without_timestamps_the_reason_is_said():
    ((caption, _, lines),) = tables(STRINGS, [], [step(us=None)], CARD)
    assert "does not say" in caption
    assert lines[0] == ["gate_up", "30", "–", "1.43", "–", "–"]


def test_of_many_contexts_the_first_and_the_last_are_shown():
    steps = [step("prefill", 0), step(position=36), step(position=500), step(position=2000)]
    captions = [caption for caption, _, _ in tables(STRINGS, [], steps, CARD)]
    assert len(captions) == 3
    assert "36" in captions[0] and "2000" in captions[1]


def test_numbers_have_about_three_digits():
    assert [number(value) for value in (0.126, 9.99, 12.34, 123.4, 4321, 0, None)] == [
        "0.13",
        "9.99",
        "12.3",
        "123",
        "4321",
        "0.00",
        "–",
    ]
    assert (share(0.824), share(None)) == ("82 %", "–")
