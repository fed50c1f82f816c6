"""The speed benchmark's report and its targets, from the JSON that the page gives."""

import json

from tests.bench.speed_report import SpeedReport
from tests.bench.speed_targets import targets
from ui import benchmark

CARD = {"bandwidth_gb_per_s": 4300, "dispatch_us": 1.9, "host_dispatch_us": 5}
PART = {"name": "gate_up", "dispatches": 180, "weight_bytes": 80_000_000, "kv_bytes": 0, "us": 600.0}
STEP = {"kind": "decode", "position": 40, "tokens": 1, "dispatches": 180, "us": 700.0, "rows": [PART]}
SMOLLM2 = {
    "name": "SmolLM2 135M",
    "quantisation": "Q4_1",
    "n_layers": 30,
    "vocab_size": 49152,
    "context_length": 8192,
}


def row(n_tokens, tokens_per_s, ttft_ms, engine_ttft_ms=10.0, second_ms=None):
    sample = {
        "prompt_tokens": n_tokens,
        "output_tokens": 128,
        "ttft_ms": ttft_ms,
        "tokens_per_s": tokens_per_s,
        "engine_ttft_ms": engine_ttft_ms,
        "step_ms": 1.0,
        "python_ms": 0.2,
    }
    return dict(benchmark.row(n_tokens, [sample] * 3, STEP, CARD), second_turn_ttft_ms=second_ms)


def page(**changes):
    rows = [row(32, 900.0, 12.0), row(512, 880.0, 18.0), row(2000, 800.0, 55.0, 40.0, 11.0), row(8000, 600.0, 300.0)]
    load = {
        "ready_ms": 2000.0,
        "timings": {"upload_s": 0.5},
        "memory": {"weights": 90_000_000, "kv": 100_000_000},
        "ledger": {"buffers": 9, "bytes": 200_000_000},
    }
    found = {
        "bench": "speed",
        "date": "2026-11-30T10:00:00.000Z",
        "browser": "Mozilla/5.0",
        "adapter": {"vendor": "nvidia", "architecture": ""},
        "model": SMOLLM2,
        "load": load,
        "plan": {"prompt_tokens": [32], "answer_tokens": 128, "samples": 3, "chunk_tokens": 512},
        "card": CARD,
        "end": "done",
        "rows": rows,
        "steps": [STEP],
    }
    return {**found, **changes}


def report(**changes):
    loads = [{"ready_ms": 3000.0, "timings": {}}, {"ready_ms": 1250.0, "timings": {"upload_s": 0.4}}]
    return SpeedReport("python3 -m tests bench speed", "NVIDIA H200, 580.1", "156.0", loads, page(**changes))


def test_the_issues_bounds_for_the_small_model():
    found = {target.what: target for target in report().targets}
    met = {what: target.is_met for what, target in found.items()}
    assert met == {
        "decode, short context": True,
        # 600 of 900: a third is lost.
        "decode, lost at 8,000 tokens": False,
        "share of the limit": True,
        "dispatches of a step": True,
        "Python's own time of a token": True,
        "prefill, 2,000 tokens": True,
        "time to the first token, 32 tokens": False,
        "time to the first token, 512 tokens": True,
        "time to the first token, 2000 tokens": True,
        # 11 of 55 ms.
        "second turn of the first, 2,000 tokens": True,
        "warm load": True,
        "GPU bytes over weights, KV and 64 MB": True,
    }
    assert found["prefill, 2,000 tokens"].found == 50_000
    assert found["warm load"].found == 1250


def test_what_was_not_measured_is_no_target():
    found = targets(page(rows=[benchmark.too_long(8000, 2048)]), [])
    assert [target.what for target in found] == ["GPU bytes over weights, KV and 64 MB"]


def test_the_larger_shape_has_bounds_of_its_own_and_others_have_none():
    larger = {**SMOLLM2, "n_layers": 28, "vocab_size": 151936}
    found = {target.what: target.wanted for target in report(model=larger).targets}
    assert found["decode, short context"] == 800
    assert found["dispatches of a step"] == 6 * 28 + 3
    assert "warm load" not in found
    assert report(model={**SMOLLM2, "n_layers": 2}).targets == []


def test_json_is_the_pages_and_what_the_machine_knows():
    found = json.loads(json.dumps(report().to_json()))
    assert (found["bench"], found["driver"], found["chromium"]) == ("speed", "NVIDIA H200, 580.1", "156.0")
    assert len(found["rows"]) == 4 and len(found["loads"]) == 2 and len(found["targets"]) == 12
    assert found["faults"] == []


def test_the_table_names_where_it_was_measured_and_shows_the_pages_tables():
    text = report().table()
    assert text.startswith("2026-11-30; NVIDIA H200, 580.1; Chromium 156.0; SmolLM2 135M Q4_1, context 8192;")
    assert "`python3 -m tests bench speed`" in text
    assert "Loaded in 1250 ms of the page's life (upload_s 0.4)." in text
    assert "| decode, lost at 8,000 tokens | at most 25% | 33% | no |" in text
    assert "| 2000 | 55.0 ms | 11.0 ms | 50000 | 800 |" in text
    assert "| gate_up | 180 | 3.33 | 0.44 | 133 | 60 % |" in text
    assert "FAULT" not in text


def test_faults_end_the_table():
    found = report()
    found.faults.append("the benchmark ended with E500: None")
    assert found.table().endswith("FAULT the benchmark ended with E500: None")
