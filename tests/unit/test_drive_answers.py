"""What the driver reports, from what the recorder saw."""

from tests.drive.summary import summary
from tests.support.answers import Answer, read_answer

LOADED = [
    (10.0, {"kind": "capabilities", "adapter": {"vendor": "google"}, "shared_memory": True}),
    (90.0, {"kind": "state", "state": "ready", "epoch": 0, "kv_length": 0}),
]
USAGE = {"kv_length": 5, "committed_tokens": 5, "context_length": 512, "num_cached_tokens": 0}
TIMINGS = {"tokens_per_s": 20.0, "step_ms": 50.0}
POOL = {"page_positions": 16, "total": 9, "used": 2, "shared": 1, "cached": 0, "free": 7, "utilisation": 0.5}
ERROR = {"code": "E603", "message": "too long", "hint": "shorten", "data": {"n": 9}}


def answered(at, *texts, reason="stop", before=""):
    deltas = [
        (at + 10.0 * number, {"kind": "delta", "text": text, "token_ids": [number]})
        for number, text in enumerate(texts, start=1)
    ]
    return [
        (at + 1.0, {"kind": "started", "prompt_ids": [1, 2], "num_cached_tokens": 0, "text": before}),
        *deltas,
        (
            at + 100.0,
            {
                "kind": "finished",
                "reason": reason,
                "output_ids": [1, 2],
                "text": before + "".join(texts),
                "usage": USAGE,
                "timings": TIMINGS,
                "ledger": {"buffers": 1, "bytes": 2},
            },
        ),
    ]


def test_a_whole_answer():
    answer = read_answer([*LOADED, *answered(100.0, "Pa", "ris")], [(100.0, "generate")], "Paris")
    assert answer == Answer(
        prompt_ids=[1, 2],
        output_ids=[1, 2],
        text="Paris",
        streamed_text="Paris",
        finish_reason="stop",
        ttft_ms=10.0,
        tokens_per_s=20.0,
        stop_ms=None,
        step_ms=50.0,
        kv_length=5,
        committed_tokens=5,
        context_used=5,
        context_length=512,
        num_cached_tokens=0,
        ledger={"buffers": 1, "bytes": 2},
        adapter={"vendor": "google"},
        ready_ms=90.0,
    )


def test_only_the_last_answer_counts():
    events = [*LOADED, *answered(100.0, "old"), *answered(300.0, "new", reason="abort")]
    clicks = [(100.0, "generate"), (150.0, "stop"), (300.0, "generate"), (340.0, "stop")]
    answer = read_answer(events, clicks, "new")
    assert (answer.streamed_text, answer.finish_reason) == ("new", "abort")
    assert (answer.ttft_ms, answer.stop_ms, answer.stop_to_last_delta_ms) == (10.0, 60.0, 0.0)


def test_a_stop_of_an_earlier_answer_is_not_this_ones():
    events = [*LOADED, *answered(100.0, "old"), *answered(300.0, "new")]
    clicks = [(100.0, "generate"), (150.0, "stop"), (300.0, "generate")]
    answer = read_answer(events, clicks, "new")
    assert answer.stop_ms is answer.stop_to_last_delta_ms is None


def test_what_still_came_after_a_stop():
    events = [*LOADED, *answered(100.0, "a", "b", "c", reason="abort")]
    answer = read_answer(events, [(100.0, "generate"), (115.0, "stop")], "abc")
    assert (answer.stop_ms, answer.stop_to_last_delta_ms) == (85.0, 15.0)


def test_a_continued_answer_is_whole():
    events = [*LOADED, *answered(100.0, "Pa", reason="abort"), *answered(300.0, "ris", before="Pa")]
    clicks = [(100.0, "generate"), (150.0, "stop"), (300.0, "continue")]
    answer = read_answer(events, clicks, "Paris")
    assert (answer.streamed_text, answer.finish_reason, answer.ttft_ms) == ("Paris", "stop", 10.0)
    assert answer.stop_ms is None


def test_a_notice_is_no_error():
    notice = (105.0, {"kind": "notice", "request_id": 1, "epoch": 0, **ERROR})
    answer = read_answer([*LOADED, notice, *answered(100.0, "a")], [(100.0, "generate")], "a")
    assert (answer.notices, answer.errors) == ([ERROR], [])
    assert "E603: too long" in summary(answer)


def test_a_stop_after_the_end_measures_nothing():
    clicks = [(100.0, "generate"), (250.0, "stop")]
    assert read_answer([*LOADED, *answered(100.0, "a")], clicks, "a").stop_ms is None


def test_an_error_keeps_code_message_hint_and_data():
    events = [*LOADED, (120.0, {"kind": "error", "request_id": 1, "epoch": 0, **ERROR})]
    answer = read_answer(events, [(100.0, "generate")], None)
    assert answer.errors == [ERROR]
    assert answer.finish_reason is answer.ttft_ms is answer.output_ids is None


def test_an_error_of_the_load_is_not_that_of_a_later_answer():
    events = [*LOADED, (95.0, {"kind": "error", "request_id": None, "epoch": 0, **ERROR})]
    assert read_answer(events, [], None).errors == [ERROR]
    assert read_answer([*events, *answered(100.0, "a")], [(100.0, "generate")], "a").errors == []


def test_the_pool_is_as_it_was_at_the_end():
    pool = {"kind": "pool", "cells": "00.......", **POOL}
    looks = [(at, {**pool, "used": used}) for at, used in ((150.0, 1), (190.0, 2), (250.0, 3))]
    events = sorted([*LOADED, *answered(100.0, "a"), *looks], key=lambda event: event[0])
    answer = read_answer(events, [(100.0, "generate")], "a")
    assert answer.pool == POOL
    assert (answer.context_used, answer.context_length) == (5, 512)
    assert "2 used, 1 shared, 0 cached, 7 free of 9 pages; 50.0% filled" in summary(answer)
    assert answer.to_json()["pool"] == POOL


def test_an_empty_pool_is_filled_to_no_part():
    events = [(95.0, {"kind": "pool", "cells": "", **POOL, "used": 0, "utilisation": None}), *answered(100.0, "a")]
    assert "of 9 pages; - filled" in summary(read_answer(events, [(100.0, "generate")], "a"))


def test_a_page_that_never_became_ready():
    answer = read_answer(LOADED[:1], [], None)
    assert (answer.ready_ms, answer.adapter) == (None, {"vendor": "google"})
    assert answer.to_json()["errors"] == []


def test_the_summary_has_the_text_the_numbers_and_the_errors():
    answer = read_answer([*LOADED, *answered(100.0, "Paris")], [(100.0, "generate")], "Paris")
    text = summary(answer)
    assert text.startswith("Paris\n")
    assert "20.0 tokens/s" in text
    assert "E603: too long shorten" in summary(Answer(errors=[ERROR]))
