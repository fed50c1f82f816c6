"""What the buttons and keys do, as pure functions of the page's state. Imports on CPython for tests.

A chat's states are its session's (`clutch/engine/lifecycle.py`) and six of the page's own: `starting` until the worker
is up, `opening` until the engine has the session, `restoring` until it has what was saved, `stopping` from the click on
Stop to the end of the answer or the load, `crashed` after the worker ended, `unsupported` when this browser has no
usable WebGPU.
"""

from clutch.protocol import MAX_SESSIONS

IDLE = ("empty", "ready", "crashed", "unsupported")
BUSY = ("starting", "opening", "restoring", "loading", "generating", "stopping", "resetting", "lost")
# Of the chat in view, by their elements.
CHAT_BUTTONS = ("new-chat", "fork", "save", "close")
# The engine's own: the same in every chat.
_COMMON = ("starting", "loading", "lost", "crashed", "unsupported")
# What a chat is doing while it is not at rest; the rest of BUSY is about the engine.
_AT_WORK = ("generating", "stopping", "resetting", "restoring")

# U+3000 is what a Chinese keyboard types. MicroPython's strip() knows only ASCII space, and given characters
# it strips single bytes of them (measured).
_SPACE = " \t\n\r\f\v\u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join([chr(0x2000 + i) for i in range(11)])

# What Stop ends in each state. In `lost` the engine is getting the GPU, the model and the answer back.
_STOPS = {
    "starting": "button.stop_loading",
    "loading": "button.stop_loading",
    "lost": "button.stop_loading",
    "generating": "button.stop",
}
_RESETS = ("ready", "generating", "stopping", "loading", "lost")
# Reset leaves these to go on: the model is on its way, whatever was said.
_LOADS = ("loading", "lost")
# One Stop ends these for all chats.
STOPPED_FOR_ALL = ("starting", "loading")

# What becomes of an answer that ended so: the engine can go on with it, or it can only be asked for again.
_CONTINUABLE = ("abort", "length", "error")
_BROKEN = ("error", "crashed")
# The last model is worth another try after these ends; after others the default one is the safer offer.
_LOADABLE_AGAIN = ("load_stopped", "gpu_lost", "too_large")

# What an input method reports for a key press that it keeps for itself (UI Events, section 7.3).
_IME_KEY_CODE = 229

_TAB_KEYS = {"ArrowRight": "next", "ArrowLeft": "previous", "Home": "first", "End": "last", "Delete": "close"}


def is_blank(text):
    """Return whether there is nothing but space in `text`."""
    return all(character in _SPACE for character in text)


def buttons(state, is_prompt_empty):
    """Return {name: (is_enabled, key of its label)} for generate, stop and reset."""
    return {
        "generate": (state == "ready" and not is_prompt_empty, "button.generate"),
        "stop": (state in _STOPS, "button.stopping" if state == "stopping" else _STOPS.get(state, "button.stop")),
        "reset": (state in _RESETS, "button.resetting" if state == "resetting" else "button.reset"),
    }


def can_continue(state, end):
    """Return whether Continue is offered.

    Args:
        state: the page's state.
        end: why the answer that the engine still has ended; "" when it has none.
    """
    return state == "ready" and end in _CONTINUABLE


def edit_label(state, end, is_continuable):
    """Return the key of the label of the last question's button, or None when it has no button.

    Args:
        state: the page's state.
        end: why the last answer ended; None when the last message is no answer.
        is_continuable: what `can_continue` says of it.
    """
    if state != "ready" or end is None:
        return None
    return "button.ask_again" if end in _BROKEN and not is_continuable else "button.edit"


def state_after_reset(state, is_load_pending):
    """Return the page's state after a click on Reset; a load goes on."""
    return state if state in _LOADS or is_load_pending else "resetting"


def can_choose_model(states):
    """Return whether a model file may be chosen: not while the engine would refuse it, or a chat is at work."""
    return all([state in ("empty", "ready") for state in states])


def chat_buttons(state, is_empty, is_saving, n_chats):
    """Return {name: is_enabled} of what can be done with the chat in view.

    Args:
        state: of the chat in view.
        is_empty: nothing was said in it.
        is_saving: it is being saved.
        n_chats: how many there are.
    """
    can_copy = state == "ready" and not is_empty
    return {
        "new-chat": state != "unsupported",
        "fork": can_copy,
        "save": can_copy and not is_saving,
        "close": n_chats > 1,
    }


def are_chats_shown(n_chats, is_empty):
    """Return whether the row of chats is of any use: not before the first question."""
    return n_chats > 1 or not is_empty


def opening_refusal(n_chats):
    """Return the code of the error that answers New chat and Fork, or None when one more may be opened."""
    return "E607" if n_chats >= MAX_SESSIONS else None


def new_state(state):
    """Return the state that a new chat begins in, beside one in `state`."""
    return state if state in ("starting", "crashed", "unsupported") else "opening"


def tab_state(state, end, is_troubled):
    """Return what the dot of a chat's tab says: "trouble", "writing", "stopped" or "idle"."""
    if is_troubled:
        return "trouble"
    if state in _AT_WORK:
        return "writing"
    return "stopped" if state == "ready" and end in _CONTINUABLE else "idle"


def common_state(states):
    """Return the one state that says how the engine's worker is: what is common to all chats, else a Stop, else any."""
    for state in states:
        if state in _COMMON:
            return state
    return "stopping" if "stopping" in states else states[0]


def tab_key(key):
    """Return what this key does in the row of tabs: "next", "previous", "first", "last", "close" or None."""
    return _TAB_KEYS.get(key)


def recovery(state, end):
    """Return how the visitor gets a model back: "load_default", "load_again", "restart", or None.

    Args:
        state: the page's state.
        end: why the last answer or load ended.
    """
    if state == "empty":
        return "load_again" if end in _LOADABLE_AGAIN else "load_default"
    return "restart" if state == "crashed" else None


def refusal(state):
    """Return the code of the error that answers Generate or Continue in this state, or None when it may go ahead."""
    if state == "ready":
        return None
    return "E601" if state in BUSY else "E602"


def prompt_key(key, is_shift, is_composing, key_code):
    """Return "generate" when this key press in the prompt box sends the prompt, else None."""
    is_ime = is_composing or key_code == _IME_KEY_CODE
    return "generate" if key == "Enter" and not is_shift and not is_ime else None


def page_key(state, key, is_composing):
    """Return "stop" when this key press anywhere stops the answer, else None."""
    return "stop" if key == "Escape" and not is_composing and state == "generating" else None
