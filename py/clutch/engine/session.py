"""A session: one of the conversations that share the engine, with its own number, epoch, state and stop mark."""

from collections.abc import Callable

from clutch.engine.control import Cancellation, StopMark
from clutch.engine.conversation import Conversation
from clutch.engine.lifecycle import EngineState, Lifecycle
from clutch.engine.platform import Platform
from clutch.engine.work import Work


class Session:
    """What the engine knows of a conversation besides its tokens.

    Args:
        platform: the outside world.
        number: which, 0 to MAX_SESSIONS - 1; also its slot on the GPU.
        epoch: counts its Resets.
        state: that it begins in.
        shared_mark: reads the page's stop mark; None without shared memory.
    """

    def __init__(
        self,
        platform: Platform,
        number: int,
        epoch: int,
        state: EngineState,
        shared_mark: Callable[[], int] | None,
    ) -> None:
        self._platform = platform
        self.number = number
        self.epoch = epoch
        self.mark = StopMark(shared_mark)
        self.lifecycle = Lifecycle(state, lambda _: self.announce())
        self.work = Work()
        self.conversation: Conversation | None = None
        # Of the request that runs.
        self.cancellation: Cancellation | None = None
        self.last_request_id = 0

    @property
    def state(self) -> EngineState:
        """What it is doing."""
        return self.lifecycle.state

    @property
    def kv_length(self) -> int:
        """Positions whose keys and values are kept."""
        return self.conversation.kv_length if self.conversation else 0

    def announce(self) -> None:
        """Tell the page the state."""
        self._platform.send(
            "state", state=str(self.state), session=self.number, epoch=self.epoch, kv_length=self.kv_length
        )

    def number_request(self, request_id: int) -> None:
        """Note a request before it runs: what stops all so far must stop it too."""
        self.last_request_id = max(self.last_request_id, request_id)

    def stop_all(self) -> None:
        """Stop every request so far at its next step; what only waits goes on."""
        self.mark.raise_to(self.last_request_id)

    def interrupt(self) -> None:
        """End what the running request waits for, if it was stopped."""
        if self.cancellation is not None:
            self.cancellation.interrupt()
