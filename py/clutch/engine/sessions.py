"""The sessions that are open; there is always at least one."""

from collections.abc import Callable, Iterable, Iterator

from clutch.engine.lifecycle import EngineState
from clutch.engine.platform import Platform
from clutch.engine.session import Session
from clutch.errors import NoSuchSession, RequestError, TooManySessions
from clutch.kv.table import BlockTable
from clutch.protocol import MAX_SESSIONS

_OF_THE_MODEL = frozenset({EngineState.EMPTY, EngineState.LOADING, EngineState.LOST})


class Sessions:
    """Opens, finds and closes them.

    Args:
        platform: the outside world.
    """

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._sessions: dict[int, Session] = {}
        self._sessions[0] = self._new(0, 0, EngineState.EMPTY)

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._sessions.values()))

    def __getitem__(self, number: int) -> Session:
        """Return an open session.

        Raises:
            NoSuchSession: it is not open.
        """
        if number not in self._sessions:
            raise _not_open(number, self._sessions)
        return self._sessions[number]

    @property
    def model_state(self) -> EngineState:
        """EMPTY, LOADING, LOST or READY: what is common to all sessions."""
        state = next(iter(self)).state
        return state if state in _OF_THE_MODEL else EngineState.READY

    def open(self, number: int, epoch: int) -> Session:
        """Return a new session.

        Raises:
            TooManySessions: there is no such place, or it is taken.
        """
        if number in self._sessions or not 0 <= number < MAX_SESSIONS:
            raise TooManySessions(
                f"Session {number} cannot be opened: {len(self._sessions)} of {MAX_SESSIONS} are open.",
                hint=f"Choose a free number from 0 to {MAX_SESSIONS - 1}, or close a session.",
                session=number,
                open_sessions=sorted(self._sessions),
            )
        self._sessions[number] = self._new(number, epoch, self.model_state)
        return self._sessions[number]

    def close(self, number: int) -> None:
        """Forget a session.

        Raises:
            RequestError: it is the last.
        """
        if len(self._sessions) == 1:
            raise RequestError("The last session cannot be closed.", hint="Reset it instead.", session=number)
        del self._sessions[number]

    def check_open(self, session: Session) -> None:
        """Check that a session was not closed since it was asked for.

        Raises:
            NoSuchSession: it was.
        """
        if self._sessions.get(session.number) is not session:
            raise _not_open(session.number, self._sessions)

    def enter(self, state: EngineState) -> None:
        """Bring all sessions to `state`, as far as they are not there."""
        for session in self:
            if session.state is not state:
                session.lifecycle.to(state)

    def tables(self) -> dict[int, BlockTable]:
        """Return the block tables of those that have one."""
        sequences = {session.number: session.conversation and session.conversation.sequence for session in self}
        return {number: sequence.table for number, sequence in sequences.items() if sequence}

    def _new(self, number: int, epoch: int, state: EngineState) -> Session:
        shared = self._platform.shared_mark
        read: Callable[[], int] | None = None if shared is None else lambda: shared.read(number)
        return Session(self._platform, number, epoch, state, read)


def _not_open(number: int, open_numbers: Iterable[int]) -> NoSuchSession:
    return NoSuchSession(
        f"There is no session {number}.", hint="Open it first.", session=number, open_sessions=sorted(open_numbers)
    )
