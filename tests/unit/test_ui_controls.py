import pytest

from clutch.engine.lifecycle import EngineState
from ui import controls

STATES = (*controls.IDLE, *controls.BUSY)


def enabled(state, is_prompt_empty=False):
    return {name for name, (is_enabled, _) in controls.buttons(state, is_prompt_empty).items() if is_enabled}


def test_states_are_the_engines_and_the_pages_own():
    assert set(STATES) - {str(state) for state in EngineState} == {
        "starting",
        "stopping",
        "crashed",
        "unsupported",
    }
    assert {str(state) for state in EngineState} <= set(STATES)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("starting", {"stop"}),
        ("loading", {"stop", "reset"}),
        ("empty", set()),
        ("ready", {"generate", "reset"}),
        ("generating", {"stop", "reset"}),
        ("stopping", {"reset"}),
        ("resetting", set()),
        ("lost", {"stop", "reset"}),
        ("crashed", set()),
        ("unsupported", set()),
    ],
)
def test_buttons(state, expected):
    assert enabled(state) == expected
    assert enabled(state, is_prompt_empty=True) == expected - {"generate"}


def test_labels_tell_what_is_under_way():
    assert controls.buttons("stopping", False)["stop"] == (False, "button.stopping")
    assert controls.buttons("loading", False)["stop"] == (True, "button.stop_loading")
    assert controls.buttons("ready", False)["stop"] == (False, "button.stop")
    assert controls.buttons("resetting", False)["reset"] == (False, "button.resetting")
    assert controls.buttons("ready", False)["generate"] == (True, "button.generate")


def test_every_idle_state_without_a_model_offers_a_way_back():
    assert {state: controls.recovery(state, "") for state in STATES if controls.recovery(state, "")} == {
        "empty": "load_default",
        "crashed": "restart",
    }


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("load_stopped", "load_again"),
        ("gpu_lost", "load_again"),
        ("too_large", "load_again"),
        ("error", "load_default"),
    ],
)
def test_what_the_empty_page_offers_to_load(end, expected):
    assert controls.recovery("empty", end) == expected


@pytest.mark.parametrize("end", ["abort", "length", "error", "stop", "context_full", "crashed", ""])
def test_continue_is_offered_in_ready_for_an_answer_that_was_cut(end):
    offered = [state for state in STATES if controls.can_continue(state, end)]
    assert offered == (["ready"] if end in ("abort", "length", "error") else [])


@pytest.mark.parametrize(
    ("end", "is_continuable", "expected"),
    [
        ("stop", False, "button.edit"),
        ("abort", True, "button.edit"),
        ("abort", False, "button.edit"),
        ("", False, "button.edit"),
        ("error", True, "button.edit"),
        ("error", False, "button.ask_again"),
        ("crashed", False, "button.ask_again"),
        (None, False, None),
    ],
)
def test_the_last_question_can_be_edited_or_asked_again(end, is_continuable, expected):
    assert controls.edit_label("ready", end, is_continuable) == expected
    assert {controls.edit_label(state, end, is_continuable) for state in STATES if state != "ready"} == {None}


def test_reset_lets_a_load_go_on():
    kept = {state for state in STATES if controls.state_after_reset(state, is_load_pending=False) == state}
    assert kept == {"loading", "lost", "resetting"}
    assert controls.state_after_reset("stopping", is_load_pending=True) == "stopping"
    assert controls.state_after_reset("stopping", is_load_pending=False) == "resetting"


def test_a_model_can_be_chosen_when_the_engine_would_take_it():
    assert {state for state in STATES if controls.can_choose_model(state)} == {"empty", "ready"}


def test_refusal_agrees_with_the_states():
    assert controls.refusal("ready") is None
    assert {controls.refusal(state) for state in controls.BUSY} == {"E601"}
    assert {controls.refusal(state) for state in controls.IDLE if state != "ready"} == {"E602"}


@pytest.mark.parametrize(
    ("key", "is_shift", "is_composing", "key_code", "expected"),
    [
        ("Enter", False, False, 13, "generate"),
        ("Enter", True, False, 13, None),
        ("Enter", False, True, 13, None),
        ("Enter", False, False, 229, None),
        ("a", False, False, 65, None),
    ],
)
def test_prompt_key(key, is_shift, is_composing, key_code, expected):
    assert controls.prompt_key(key, is_shift, is_composing, key_code) == expected


def test_escape_stops_only_a_running_answer():
    assert [state for state in STATES if controls.page_key(state, "Escape", False)] == ["generating"]
    assert controls.page_key("generating", "Escape", True) is None
    assert controls.page_key("generating", "Enter", False) is None


@pytest.mark.parametrize("text", ["", " \n\t", "\u3000", "\u00a0\u2003\ufeff"])
def test_blank(text):
    assert controls.is_blank(text)


@pytest.mark.parametrize("text", ["a", " \U0001f600 ", "\0", "\u3000字"])
def test_not_blank(text):
    assert not controls.is_blank(text)
