from pathlib import Path

import pytest

from ui import controls, status
from ui.strings import Strings, choose_language, load

STRINGS = load(str(Path(__file__).resolve().parents[2] / "static" / "strings"), "en")


def progress(phase, done=0, total=0, unit=""):
    return {"phase": phase, "done": done, "total": total, "unit": unit}


@pytest.mark.parametrize(
    ("state", "event", "expected"),
    [
        ("starting", None, "Starting…"),
        ("starting", progress("starting_python"), "Starting Python"),
        ("loading", progress("reading_weights", 37e6, 98e6, "bytes"), "Reading weights 37/98 MB"),
        ("loading", progress("reading_weights", 1.24e9, 4.7e9, "bytes"), "Reading weights 1.2/4.7 GB"),
        ("loading", progress("compiling", 9, 21, "kernels"), "Compiling kernels 9/21"),
        ("loading", progress("warming_up"), "Warming up"),
        ("generating", progress("prefill", 64, 512, ""), "Reading the prompt 64/512"),
        ("generating", None, "Reading the prompt…"),
        ("stopping", progress("prefill", 64, 512, ""), "Stopping…"),
        ("still_stopping", None, "Still stopping…"),
        ("lost", None, "The GPU was lost; getting it back…"),
        (
            "lost",
            progress("reading_weights", 37e6, 98e6, "bytes"),
            "The GPU was lost; getting it back… Reading weights 37/98 MB",
        ),
        ("ready", None, "Ready"),
    ],
)
def test_status_line(state, event, expected):
    assert status.status_line(STRINGS, state, event, False, "") == expected


def test_writing_beats_the_progress_of_the_prompt():
    assert status.status_line(STRINGS, "generating", progress("prefill", 512, 512), True, "") == "Writing…"


def test_ready_says_why_the_answer_ended():
    assert status.status_line(STRINGS, "ready", None, False, "abort") == "Stopped. Ready"
    assert status.status_line(STRINGS, "generating", None, False, "abort") == "Reading the prompt…"


def test_empty_says_why_there_is_no_model():
    assert status.status_line(STRINGS, "empty", None, False, "load_stopped") == "Loading was stopped"
    assert status.status_line(STRINGS, "empty", None, False, "gpu_lost").startswith("The GPU was lost")
    assert status.status_line(STRINGS, "empty", None, False, "abort") == "No model is loaded"


def test_a_slow_stop_has_a_sentence_of_its_own():
    assert status.shown_state("stopping", True) == "still_stopping"
    assert status.shown_state("stopping", False) == "stopping"
    assert status.shown_state("loading", True) == "loading"


def test_self_test_line():
    assert status.self_test_line(STRINGS, {"verdict": "passed", "checks": 9}) == "Self-test passed"
    assert status.self_test_line(STRINGS, {"verdict": "plain kernels"}) == "Self-test: plain kernels"
    assert status.self_test_line(STRINGS, {}) == ""


def test_kernels_line():
    kernels = {"recipe": "decode: subgroups of 32", "origin": "tuned", "tuning_ms": 212}
    line = "Kernels: decode: subgroups of 32; "
    assert status.kernels_line(STRINGS, kernels) == line + "tuned in 212 ms"
    assert (
        status.kernels_line(STRINGS, {**kernels, "origin": "kept", "tuning_ms": 0}) == line + "tuning kept from before"
    )
    assert status.kernels_line(STRINGS, {**kernels, "origin": "default", "tuning_ms": 0}) == line + "not tuned"
    assert status.kernels_line(STRINGS, {}) == ""


def test_announcement_has_no_counter():
    event = progress("compiling", 9, 21, "kernels")
    assert status.phase_line(STRINGS, "loading", event, False, "") == "Compiling kernels"


@pytest.mark.parametrize("state", [*controls.IDLE, *controls.BUSY])
def test_every_state_has_a_sentence(state):
    assert not status.status_line(STRINGS, state, None, False, "").startswith("status.")


def test_size():
    sizes = {0: "1 kB", 3100: "3 kB", 1_000_000: "1 MB", 24_400_000: "24 MB", 4_700_000_000: "4.7 GB"}
    assert {n: status.size(n) for n in sizes} == sizes


def test_progress_fraction():
    event = progress("compiling", 9, 18, "kernels")
    assert status.progress_fraction("loading", event, False) == 0.5
    assert status.progress_fraction("loading", progress("compiling", 20, 18), False) == 1
    assert status.progress_fraction("loading", None, False) == -1
    assert status.progress_fraction("generating", event, True) is None
    assert status.progress_fraction("lost", event, True) == 0.5
    assert status.progress_fraction("stopping", event, True) == -1
    assert status.progress_fraction("ready", event, False) is None


def test_numbers_line_has_what_is_known():
    numbers = {"tokens_per_s": 53.24, "ttft_ms": 342.4, "kv_length": 61, "context_length": 2048}
    assert status.numbers_line(STRINGS, numbers) == ["53.2 tokens/s", "first token 342 ms", "context 61/2048"]
    assert status.numbers_line(STRINGS, {"tokens_per_s": 123.4, "ttft_ms": 1420, "context_length": None}) == [
        "123 tokens/s",
        "first token 1.4 s",
    ]
    assert status.numbers_line(STRINGS, {"n_new": 37, "n_reused": 0}) == ["prompt 37 new"]
    assert status.numbers_line(STRINGS, {"n_new": 12, "n_reused": 340}) == ["prompt 12 new + 340 reused"]
    assert status.numbers_line(STRINGS, {}) == []


def test_names():
    assert status.model_line({"name": "M", "quantisation": "Q4_1", "size_bytes": 98_362_432}) == "M · Q4_1 · 98 MB"
    assert status.model_line({}) == ""
    assert (
        status.adapter_line({"vendor": "google", "architecture": "swiftshader", "description": ""})
        == "google swiftshader"
    )
    assert status.adapter_line({"description": "NVIDIA H200"}) == "NVIDIA H200"


@pytest.mark.parametrize(
    ("wishes", "expected"),
    [
        (("zh", "en", "en-US"), "zh"),
        ((None, "zh", "en-US"), "zh"),
        ((None, None, "zh-TW"), "zh"),
        (("fr", None, "de"), "en"),
    ],
)
def test_choose_language(wishes, expected):
    assert choose_language(*wishes) == expected


def test_unknown_sentence_is_shown_by_its_key():
    strings = Strings({"en": {"a": "{x} b"}, "zh": {}}, "en")
    assert strings.text("a", x=1) == "1 b" and strings.text("c") == "c"
    assert strings.has("a") and not strings.has("c")
