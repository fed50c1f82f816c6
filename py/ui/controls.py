"""What the buttons and keys do, as pure functions of the page's state. Imports on CPython for tests.

The page's states are the engine's (`clutch/engine/lifecycle.py`) and five of its own: `starting` until the worker
is up, `stopping` from the click on Stop to the end of the answer, `crashed` after the worker ended,
`unsupported` when this browser has no usable WebGPU.
"""

IDLE = ("empty", "ready", "lost", "crashed", "unsupported")
BUSY = ("starting", "loading", "generating", "stopping", "resetting")

# U+3000 is what a Chinese keyboard types. MicroPython's strip() knows only ASCII space, and given characters
# it strips single bytes of them (measured).
_SPACE = " \t\n\r\f\v\u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join([chr(0x2000 + i) for i in range(11)])

_RUNNING = ("generating", "stopping")
_RECOVERY = {"empty": "load_default", "lost": "load_again", "crashed": "restart"}

# What an input method reports for a key press that it keeps for itself (UI Events, section 7.3).
_IME_KEY_CODE = 229


def is_blank(text):
    """Return whether there is nothing but space in `text`."""
    return all(character in _SPACE for character in text)


def buttons(state, is_prompt_empty):
    """Return {name: (is_enabled, key of its label)} for generate, stop and reset."""
    return {
        "generate": (state == "ready" and not is_prompt_empty, "button.generate"),
        "stop": (state == "generating", "button.stopping" if state == "stopping" else "button.stop"),
        "reset": (
            state == "ready" or state in _RUNNING,
            "button.resetting" if state == "resetting" else "button.reset",
        ),
    }


def can_choose_model(state):
    """Return whether a model file may be chosen: not while the engine would refuse it."""
    return state in ("empty", "ready", "lost")


def recovery(state):
    """Return how the visitor gets a model back: "load_default", "load_again", "restart", or None."""
    return _RECOVERY.get(state)


def refusal(state):
    """Return the code of the error that answers Generate in this state, or None when it may go ahead."""
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
