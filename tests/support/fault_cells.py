"""What the cells of the fault matrix are made of: how a case ends, and at which call of the browser it begins.

A phase is a place in the code, named by the call of the browser that is made there; a fault is what happens at that
call. The rules are those of `faulty_worker.js`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Rule = dict[str, Any]
Act = dict[str, Any]

FAULTS = {
    "stop": "Stop",
    "reset": "Reset",
    "lost": "device lost",
    "oom": "out of memory",
    "fails": "call rejects or throws",
    "never": "never settles",
    "dies": "worker dies",
}

# How a request ends: with `loaded`, with `finished` and its reason, with an error's code, or there is none.
LOADED, ABORT, LENGTH, NOTHING = "loaded", "abort", "length", ""
# Where the engine is then; without an engine the worker has to be replaced.
READY, EMPTY, NO_ENGINE = "ready", "empty", "no engine"

RESET: Act = {"do": "reset"}
LOSE: Act = {"do": "lose"}
DIE: Act = {"do": "die"}
NEVER: Act = {"do": "never"}


@dataclass(frozen=True)
class Cell:
    """How a case ends.

    Args:
        ending, state: see above.
        acts: what happens; the fault of the column if empty.
        n_notices: how often the page is told that something was mended.
        rule, scene: where, if not where the phase's other cells are.
    """

    ending: str
    state: str
    acts: tuple[Act, ...] = ()
    n_notices: int = 0
    rule: Rule | None = None
    scene: str = ""

    def __str__(self) -> str:
        """Return it in words, for the document."""
        ending = {LOADED: "loaded", ABORT: "aborted", LENGTH: "golden answer", NOTHING: ""}.get(
            self.ending, self.ending
        )
        notice = "notice" if self.n_notices else ""
        return ", ".join(part for part in (ending, notice, self.state.upper()) if part)


@dataclass(frozen=True)
class Phase:
    """A place where things go wrong.

    Args:
        name: for people.
        scene: what is going on: boot, load, generate, resume, reset, unload, idle.
        rule: the call that is made there.
        cells: by fault; a text says why there is no such case.
    """

    name: str
    scene: str
    rule: Rule
    cells: Mapping[str, Cell | str] = field(default_factory=dict)


def at(api: str, match: str = "", nth: int = 1, then: Rule | None = None, times: int = 1) -> Rule:
    """Return the rule of the nth call of `api` whose text contains `match`; see `faulty_worker.js`."""
    rule: Rule = {"api": api, "match": match, "nth": nth, "times": times}
    return rule if then is None else {**rule, "then": then}


def acting(rule: Rule, acts: tuple[Act, ...]) -> Rule:
    """Return `rule` with `acts` at its end."""
    return {**rule, "then": acting(rule["then"], acts)} if "then" in rule else {**rule, "acts": list(acts)}


def reject(name: str, message: str = "for a test") -> tuple[Act, ...]:
    """Return the act of a promise that rejects."""
    return ({"do": "reject", "name": name, "message": message},)


def throw(name: str) -> tuple[Act, ...]:
    """Return the act of a call that throws."""
    return ({"do": "throw", "name": name},)


def after_deltas(rule: Rule) -> Rule:
    """Return `rule`, armed once an answer is under way."""
    return at("postMessage", '"kind": "delta"', nth=2, then=rule)
