import pytest

from clutch.engine.lifecycle import EngineState
from ui import controls

STATES = (*controls.IDLE, *controls.BUSY)


def enabled(state, is_prompt_empty=False):
    return {name for name, (is_enabled, _) in controls.buttons(state, is_prompt_empty).items() if is_enabled}


def test_states_are_the_engines_and_the_pages_own():
    assert set(STATES) - {str(state) for state in EngineState} == {
        "starting",
        "opening",
        "restoring",
        "stopping",
        "crashed",
        "unsupported",
    }
    assert {str(state) for state in EngineState} <= set(STATES)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("starting", {"stop"}),
        ("opening", set()),
        ("restoring", set()),
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
    assert set(controls.STOPPED_FOR_ALL) <= {"starting", *kept}
    assert controls.state_after_reset("stopping", is_load_pending=True) == "stopping"
    assert controls.state_after_reset("stopping", is_load_pending=False) == "resetting"


def test_a_model_can_be_chosen_when_the_engine_would_take_it():
    assert {state for state in STATES if controls.can_choose_model([state])} == {"empty", "ready"}
    assert not controls.can_choose_model(["ready", "generating"])


def can_do(state, is_empty=False, is_saving=False, n_chats=2):
    enabled_names = controls.chat_buttons(state, is_empty, is_saving, n_chats)
    assert tuple(enabled_names) == controls.CHAT_BUTTONS
    return {name for name, is_enabled in enabled_names.items() if is_enabled}


def test_a_chat_can_be_copied_and_saved_when_nothing_runs_in_it():
    assert can_do("ready") == {"new-chat", "fork", "save", "close"}
    assert can_do("ready", is_saving=True) == {"new-chat", "fork", "close"}
    assert can_do("ready", is_empty=True) == {"new-chat", "close"}
    assert {state for state in STATES if "fork" in can_do(state) or "save" in can_do(state)} == {"ready"}
    assert {state for state in STATES if "new-chat" not in can_do(state)} == {"unsupported"}


def test_the_last_chat_is_not_closed():
    assert {state for state in STATES if "close" in can_do(state, n_chats=1)} == set()
    assert {state for state in STATES if "close" in can_do(state, n_chats=2)} == set(STATES)


def test_a_newcomer_sees_no_row_of_chats():
    assert not controls.are_chats_shown(1, is_empty=True)
    assert controls.are_chats_shown(1, is_empty=False) and controls.are_chats_shown(2, is_empty=True)


def test_the_seventeenth_chat_is_refused():
    assert controls.opening_refusal(15) is None
    assert controls.opening_refusal(16) == "E607"


def test_a_new_chat_waits_for_the_engine():
    assert {state for state in STATES if controls.new_state(state) == state} == {
        "opening",
        "starting",
        "crashed",
        "unsupported",
    }
    assert {controls.new_state(state) for state in STATES if controls.new_state(state) != state} == {"opening"}


def test_the_dot_of_a_tab():
    dots = {state: controls.tab_state(state, "", False) for state in STATES}
    assert {state for state, dot in dots.items() if dot == "writing"} == {
        "generating",
        "stopping",
        "resetting",
        "restoring",
    }
    assert controls.tab_state("ready", "abort", False) == "stopped"
    assert controls.tab_state("ready", "stop", False) == "idle"
    assert {controls.tab_state(state, "abort", True) for state in STATES} == {"trouble"}


@pytest.mark.parametrize(
    ("states", "common"),
    [
        (["ready"], "ready"),
        (["generating", "ready"], "generating"),
        (["ready", "stopping"], "stopping"),
        (["opening", "loading"], "loading"),
        (["stopping", "lost"], "lost"),
        (["crashed", "crashed"], "crashed"),
    ],
)
def test_how_the_worker_is(states, common):
    assert controls.common_state(states) == common


def test_keys_of_the_tabs():
    assert controls.tab_key("ArrowRight") == "next" and controls.tab_key("Delete") == "close"
    assert controls.tab_key("a") is None


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
