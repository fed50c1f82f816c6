"""What the buttons and keys do, as pure functions of the page's state. Imports on CPython for tests.

The page's states are the engine's (`clutch/engine/lifecycle.py`) and four of its own: `starting` until the worker
is up, `stopping` from the click on Stop to the end of the answer or the load, `crashed` after the worker ended,
`unsupported` when this browser has no usable WebGPU.
"""

IDLE = ("empty", "ready", "crashed", "unsupported")
BUSY = ("starting", "loading", "generating", "stopping", "resetting", "lost")

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

# What becomes of an answer that ended so: the engine can go on with it, or it can only be asked for again.
_CONTINUABLE = ("abort", "length", "error")
_BROKEN = ("error", "crashed")
# The last model is worth another try after these ends; after others the default one is the safer offer.
_LOADABLE_AGAIN = ("load_stopped", "gpu_lost", "too_large")

# What an input method reports for a key press that it keeps for itself (UI Events, section 7.3).
_IME_KEY_CODE = 229


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


def can_choose_model(state):
    """Return whether a model file may be chosen: not while the engine would refuse it."""
    return state in ("empty", "ready")


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
