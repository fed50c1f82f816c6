"""The states of the engine and the only table of transitions between them."""

from collections.abc import Callable
from enum import StrEnum

from clutch.errors import BusyError, InternalError, NotReadyError


class EngineState(StrEnum):
    """What the engine is doing; the page's buttons are a pure function of it."""

    EMPTY = "empty"
    LOADING = "loading"
    READY = "ready"
    GENERATING = "generating"
    RESETTING = "resetting"
    LOST = "lost"


_S = EngineState

TRANSITIONS: dict[EngineState, frozenset[EngineState]] = {
    _S.EMPTY: frozenset({_S.LOADING}),
    _S.LOADING: frozenset({_S.READY, _S.EMPTY, _S.LOST}),
    _S.READY: frozenset({_S.GENERATING, _S.RESETTING, _S.EMPTY, _S.LOST}),
    _S.GENERATING: frozenset({_S.READY, _S.LOST}),
    _S.RESETTING: frozenset({_S.READY}),
    # The GPU is on its way back: to what was going on, or to nothing.
    _S.LOST: frozenset({_S.LOADING, _S.READY, _S.GENERATING, _S.EMPTY}),
}

_BUSY = frozenset({_S.LOADING, _S.GENERATING, _S.RESETTING, _S.LOST})


class Lifecycle:
    """Holds the state; every change goes through `to`, which tells the listener.

    Args:
        state: to begin in.
        on_change: called with the new state after each transition.
    """

    def __init__(self, state: EngineState, on_change: Callable[[EngineState], None]) -> None:
        self._state = state
        self._on_change = on_change

    @property
    def state(self) -> EngineState:
        """The current state."""
        return self._state

    def to(self, target: EngineState) -> None:
        """Change the state.

        Raises:
            InternalError: the table has no such transition; a bug of ours.
        """
        if target not in TRANSITIONS[self._state]:
            raise InternalError(f"No transition {self._state} -> {target}.", state=self._state, target=target)
        self._state = target
        self._on_change(target)

    def begin_loading(self) -> None:
        """EMPTY -> LOADING.

        Raises:
            BusyError: a model is loaded, or something runs.
        """
        if self._state != EngineState.EMPTY:
            raise BusyError(
                f"The engine is {self._state}; a model can be loaded when it is empty.",
                hint="Unload the model first.",
                state=str(self._state),
            )
        self.to(EngineState.LOADING)

    def check_ready(self) -> None:
        """Whether something may begin.

        Raises:
            BusyError: something runs.
            NotReadyError: no model is loaded.
        """
        if self._state in _BUSY:
            raise BusyError(
                f"The engine is {self._state}.",
                hint="Wait for it to end, or press Stop.",
                state=str(self._state),
            )
        if self._state != EngineState.READY:
            raise NotReadyError(f"The engine is {self._state}: no model is loaded.", hint="Load a model first.")

    def begin_generating(self) -> None:
        """READY -> GENERATING; raises as `check_ready`."""
        self.check_ready()
        self.to(EngineState.GENERATING)
