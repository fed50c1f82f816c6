"""The KV benchmark: what it draws, and how samples become numbers, targets, JSON and Markdown."""

import json
import math

import pytest

from tests.bench.arguments import PARTS, KvJob, parse
from tests.bench.kv_pages import Capacity, Utilisation
from tests.bench.kv_quality import Case, Quality
from tests.bench.kv_report import KvReport
from tests.bench.kv_target import Target
from tests.bench.kv_throughput import Throughput, tokens_per_s
from tests.bench.kv_ttft import TTFT_KINDS, Ttft
from tests.bench.workload import Ranges, draw

POOL = {"page_positions": 16, "total": 100, "used": 10, "shared": 0, "cached": 0, "free": 90, "utilisation": 0.95}


def answer(**changes):
    found = {
        "ttft_ms": 10.0,
        "first_at": 100.0,
        "last_at": 1100.0,
        "tokens_of_first": 1,
        "n_tokens": 11,
        "prompt_tokens": 512,
        "cached_tokens": 0,
        "output_ids": [1, 2, 3],
        "top_logits": [[7, 1.0], [8, 0.5]],
    }
    return {**found, **changes}


def ttft():
    reused = {"ttft_ms": 20.0, "prompt_tokens": 528, "cached_tokens": 512}
    cold = [answer(ttft_ms=at) for at in (90.0, 100.0, 110.0)]
    return Ttft({kind: cold if kind == "cold" else [answer(**reused)] for kind in TTFT_KINDS})


def utilisation():
    looks = [{**POOL, "used": 0, "utilisation": None}, POOL, {**POOL, "utilisation": 0.99}]
    return Utilisation(looks, Ranges().to_json(), 0, [100, 60])


def throughput():
    return Throughput({n: [[answer() for _ in range(n)]] for n in (1, 2, 4, 8)})


def quality():
    return Quality([Case("a", 2, 3, 0.1), Case("b", 5, 5, 0.2)], {"f16": 200, "q8": 112})


def report(**parts):
    model = {"name": "Tiny", "quantisation": "Q4_1", "context_length": 512}
    adapter = {"vendor": "acme", "architecture": "x1"}
    return KvReport("2026-11-30", "python3 -m tests bench kv", adapter, "156.0", model, 8192, 5, 0, dict(parts))


def everything():
    return report(
        ttft=ttft(),
        utilisation=utilisation(),
        capacity=Capacity(POOL, [70, 90], 400),
        throughput=throughput(),
        quality=quality(),
    )


def test_the_command_line_has_the_issues_numbers_as_defaults():
    job = parse(["kv"])
    assert isinstance(job, KvJob)
    assert (job.n_samples, job.parts, job.n_history_tokens, job.workload_scale) == (5, PARTS, 512, 1.0)
    assert job.command == "python3 -m tests bench kv"


def test_a_rehearsal_may_be_small():
    line = "kv --samples 1 --parts quality,ttft --history-tokens 32 --answer-tokens 4 --workload-scale 0.1 --json"
    job = parse(line.split())
    assert (job.n_samples, job.parts, job.n_history_tokens, job.n_answer_tokens) == (1, ("ttft", "quality"), 32, 4)
    assert (job.workload_scale, job.prints_json) == (0.1, True)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("kv --parts ttft,speed", "'speed'"),
        ("kv --parts ", "known: ttft"),
        ("kv --workload-scale 0", "--workload-scale"),
        ("kv --workload-scale 2", "--workload-scale"),
        ("kv --phase decode", "--phase"),
        ("kv --model /nowhere.gguf", "/nowhere.gguf is not a file"),
    ],
)
def test_what_is_wrong_is_named(line, complaint, capsys):
    with pytest.raises(SystemExit):
        parse(line.split(" "))
    assert complaint in capsys.readouterr().err


def test_a_workload_is_drawn_from_its_ranges_and_its_seed():
    ranges = Ranges()
    sessions = draw(ranges, 0)
    assert sessions == draw(ranges, 0) != draw(ranges, 1)
    assert len(sessions) == 8
    for turns in sessions:
        assert ranges.turns[0] <= len(turns) <= ranges.turns[1]
        for turn in turns:
            assert ranges.question_tokens[0] <= len(turn["words"].split()) <= ranges.question_tokens[1]
            assert ranges.answer_tokens[0] <= turn["max_tokens"] <= ranges.answer_tokens[1]
    questions = [turn["words"] for turns in sessions for turn in turns]
    assert len(set(questions)) == len(questions)


def test_a_smaller_workload_has_as_many_turns():
    small = Ranges().scaled(0.01)
    assert (small.turns, small.question_tokens, small.answer_tokens) == (Ranges().turns, (1, 2), (1, 2))
    assert [len(turns) for turns in draw(small, 3)] == [len(turns) for turns in draw(Ranges(), 3)]


def test_a_second_turn_is_compared_by_medians():
    found = ttft()
    assert found.share_of_cold("second_turn") == 0.2
    assert found.counts("forked", "cached_tokens") == (512, 512)
    assert [target.is_met for target in found.targets()] == [True]
    assert "| cold: an empty session | 100.0 ms | 110.0 ms | 100% | 512 | 0 |" in found.lines()


def test_an_empty_pool_has_no_utilisation():
    found = utilisation()
    assert found.values == [0.95, 0.99]
    assert found.mean == pytest.approx(0.97)
    assert found.to_json()["min"] == 0.95
    assert found.targets()[0].is_met


def test_sessions_that_fit_by_hand():
    # 2 sessions hold 10 of 100 pages: 20 fit. 1600 positions hold 4 buffers of 400.
    found = Capacity(POOL, [70, 90], 400)
    assert (found.paged, found.contiguous, found.factor) == (20.0, 4.0, 5.0)
    assert found.targets()[0].is_met
    assert not Capacity(POOL, [70, 90], 160).targets()[0].is_met


def test_tokens_behind_the_first_delta_count():
    # 11 + 11 tokens, 2 of them in the first delta, in the 2 s from 100 to 2100.
    answers = [answer(tokens_of_first=2), answer(first_at=200.0, last_at=2100.0)]
    assert tokens_per_s(answers) == 10.0
    assert math.isnan(tokens_per_s([answer(last_at=100.0)]))


def test_sessions_together_are_compared_with_one():
    found = throughput()
    assert found.median(1) == 10.0
    assert found.to_json()["4"]["of_one"] == pytest.approx(4.3)
    assert found.targets()[0].is_met


def test_the_8_bit_answer_counts_until_it_differs():
    packed = answer(output_ids=[1, 9, 3, 4], top_logits=[[8, 0.25], [7, 1.125], [9, 5.0]])
    assert Case.of("x", answer(), packed) == Case("x", 1, 3, 0.25)
    assert Case.of("x", answer(), answer()) == Case("x", 3, 3, 0.0)
    assert math.isnan(Case.of("x", answer(), answer(top_logits=[])).logit_difference)


def test_quality_of_all_prompts():
    found = quality()
    assert (found.agreement, found.logit_difference, found.targets()) == (7 / 8, 0.2, [])
    assert "56% of the bytes" in found.lines()[0]


@pytest.mark.parametrize(("found", "is_most", "is_met"), [(0.3, True, True), (0.31, True, False), (0.3, False, True)])
def test_a_bound_may_be_reached(found, is_most, is_met):
    assert Target("x", 0.3, found, is_most, "%").is_met == is_met


def test_json_has_every_part_and_target():
    found = json.loads(json.dumps(everything().to_json()))
    assert list(found["parts"]) == list(PARTS)
    assert [target["met"] for target in found["targets"]] == [True] * 4
    assert (found["chromium"], found["date"], found["model"]["name"]) == ("156.0", "2026-11-30", "Tiny")


def test_the_table_says_where_and_what():
    text = everything().table()
    assert text.startswith("2026-11-30; acme x1; Chromium 156.0; Tiny Q4_1, context 512; a pool of 8192 positions")
    assert "| second-turn TTFT, of cold | at most 30% | 20% | yes |" in text
    assert "| sessions in the same bytes, of contiguous buffers | at least 2.50x | 5.00x | yes |" in text
    assert "| 4 | 43.0 | 4.30x | 10.8 | 11 |" in text


def test_parts_left_out_have_no_targets():
    found = report(quality=quality())
    found.faults.append("console error: x")
    assert "target" not in found.table()
    assert found.table().endswith("FAULT console error: x")
