"""The model and its place on a GPU, shared by all sessions; a lost GPU is fetched back once for all who wait for it."""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack

from clutch.config import EngineConfig
from clutch.engine.control import Cancellation
from clutch.engine.conversation import Conversation
from clutch.engine.lifecycle import EngineState
from clutch.engine.loading import ModelFile, ModelHead, Placement, open_head, open_text, place
from clutch.engine.platform import Platform
from clutch.engine.recovery import Recoveries
from clutch.engine.session import Session
from clutch.engine.sessions import Sessions
from clutch.errors import DeviceLost, DeviceTimeout
from clutch.gpu.ledger import Ledger
from clutch.kv.pool import Pool
from clutch.model.choices import Choices
from clutch.model.upload import Source
from clutch.stages import Stages
from clutch.together import together

GPU_FAILED = (DeviceLost, DeviceTimeout)


class Host:
    """Loads, places and drops the model; keeps the sessions' states in step with it.

    Args:
        platform: the outside world.
        ledger: counts the buffers.
        sessions: that use it.
        on_back: called when a lost GPU has been replaced.
        on_lost: called with the placement whose GPU the browser says is gone.
    """

    def __init__(
        self,
        platform: Platform,
        ledger: Ledger,
        sessions: Sessions,
        *,
        on_back: Callable[[], None],
        on_lost: Callable[[Placement], None],
    ) -> None:
        self.file: ModelFile | None = None
        self.placement: Placement | None = None
        self._platform = platform
        self._ledger = ledger
        self._sessions = sessions
        self._on_back = on_back
        self._on_lost = on_lost
        self._choices = Choices(platform.choice_store)
        self._recoveries = Recoveries(platform.clock)
        self._recovery: asyncio.Task[None] | None = None
        self._n_waiting = 0

    @property
    def pool(self) -> Pool | None:
        """The pages of the GPU that the model is on."""
        return self.placement.pool if self.placement else None

    @property
    def is_coming_back(self) -> bool:
        """Whether a lost GPU is being replaced."""
        return self._recovery is not None and not self._recovery.done()

    async def load(self, source: Source, config: EngineConfig, cancellation: Cancellation) -> None:
        """Read the model and bring it onto a GPU; every session begins anew.

        Raises:
            Interrupted: it was stopped.
            ClutchError: what is wrong with the model or the GPU.
        """
        self._config = config
        await cancellation.waiting_for(self._load(source))

    async def recover(self, placement: Placement | None, failure: Exception, cancellation: Cancellation) -> None:
        """Wait until the model is on a GPU again; whoever comes first fetches it, and the last to leave gives it up.

        Args:
            placement: that failed.
            failure: how.
            cancellation: of who waits.

        Raises:
            Interrupted: it was stopped.
            ClutchError: there is no way back; `failure` when it has been lost too often.
        """
        if placement is not None and placement is self.placement:
            self._lose(failure)
            self._recovery = asyncio.ensure_future(self._come_back())
        recovery = self._recovery
        if recovery is None or recovery.done():
            if self.placement is None:
                raise failure
            return
        self._n_waiting += 1
        try:
            await cancellation.waiting_for(asyncio.shield(recovery))
        finally:
            self._n_waiting -= 1
            if not self._n_waiting and not recovery.done():
                recovery.cancel()
                await asyncio.wait([recovery])

    def new_conversation(self, session: Session) -> Conversation | None:
        """Return an empty conversation for `session`; None without a model."""
        if self.file is None:
            return None
        conversation = Conversation(self.file, session.number)
        if self.placement is not None:
            conversation.settle(self.placement)
        return conversation

    def drop_placement(self) -> None:
        """Give the GPU back."""
        if self.placement is not None:
            self.placement.close()
            self.placement = None

    def drop(self) -> None:
        """Give the model up, and what the sessions have of it."""
        self.drop_placement()
        self.file = None
        for session in self._sessions:
            session.conversation = None

    async def _load(self, source: Source) -> None:
        stages = Stages()
        head = await open_head(self._platform, source, stages)
        # Before a GPU is opened: what cannot be granted is refused at once.
        self._config.pool_of(self._config.context_of(head.spec.context_length))
        with ExitStack() as on_failure:
            on_failure.callback(self.drop_placement)
            # Side by side: Python computes while the GPU compiles and copies.
            text = open_text(self._platform, head, stages, prompt_bytes=self._config.prompt_bytes)
            _, self.file = await together(self._place(head, stages), text)
            on_failure.pop_all()
        for session in self._sessions:
            session.conversation = self.new_conversation(session)
        self._arrive(stages, lambda _: EngineState.LOADING)

    async def _come_back(self) -> None:
        file = self.file
        assert file is not None
        stages = Stages()
        await self._place(file.head, stages)
        for session in self._sessions:
            if session.conversation is not None and self.placement is not None:
                session.conversation.settle(self.placement)
        self._arrive(stages, lambda session: EngineState.GENERATING if session.cancellation else EngineState.READY)

    async def _place(self, head: ModelHead, stages: Stages) -> None:
        """Place the model on a new device, and on another when that one is lost as well."""
        while True:
            try:
                self.placement = await place(self._platform, head, self._ledger, self._config, self._choices, stages)
                return
            except GPU_FAILED as failure:
                self._lose(failure)

    def _arrive(self, stages: Stages, state_of: Callable[[Session], EngineState]) -> None:
        """Tell everybody that the model is on a GPU; after a loss, set the states."""
        placement, file = self.placement, self.file
        assert placement is not None and file is not None
        placement.device.on_lost(lambda: self._on_lost(placement))
        self._platform.send(
            "loaded",
            model={**file.head.to_wire(), "context_length": placement.context_length},
            memory=placement.model.memory.to_wire(),
            ledger=self._ledger.to_wire(),
            timings=stages.spans,
            self_test=placement.model.self_test,
            kernels=placement.model.choice.to_wire(),
        )
        if self._sessions.model_state is EngineState.LOST:
            for session in self._sessions:
                session.lifecycle.to(state_of(session))
            self._on_back()

    def _lose(self, failure: Exception) -> None:
        """Give up a lost GPU; a new one is asked for next. Raises `failure` when it has been lost too often."""
        self._sessions.enter(EngineState.LOST)
        self.drop_placement()
        if not self._recoveries.begin():
            raise failure
