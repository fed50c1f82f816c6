"""The engine: holds at most one model and one conversation, and turns messages into events.

`load` and `generate` run as tasks of their own, so that `stop`, `reset` and `unload` are heard meanwhile.
"""

import asyncio
import traceback
from collections.abc import Awaitable

from clutch.config import EngineConfig
from clutch.engine.control import StopMark
from clutch.engine.conversation import Conversation
from clutch.engine.lifecycle import EngineState, Lifecycle
from clutch.engine.loading import Loaded, load
from clutch.engine.platform import Platform
from clutch.errors import ClutchError, DeviceLost, InternalError, RequestError
from clutch.gpu.ledger import Ledger

Message = dict[str, object]


class Engine:
    """Answers the messages of `protocol.REQUESTS`.

    Args:
        platform: the outside world.
        config: budgets.
    """

    def __init__(self, platform: Platform, config: EngineConfig) -> None:
        self._platform = platform
        self._config = config
        self._ledger = Ledger()
        self._mark = StopMark(platform.shared_mark)
        self._lifecycle = Lifecycle(self._send_state)
        self._epoch = 0
        self._last_request_id = 0
        self._loaded: Loaded | None = None
        self._conversation: Conversation | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def state(self) -> EngineState:
        """What it is doing."""
        return self._lifecycle.state

    @property
    def ledger(self) -> Ledger:
        """Counts its buffers."""
        return self._ledger

    def announce(self) -> None:
        """Tell the page the state, first of all that the engine is up."""
        self._send_state(self.state)

    async def handle(self, message: Message, file: object = None) -> None:
        """Act on one decoded message; every failure becomes an `error` event."""
        try:
            match message["kind"]:
                case "load":
                    self._start(None, self._load(message, file))
                case "generate":
                    # Noted before the task runs: a reset or unload in the same turn must stop it too.
                    request_id = int(message["request_id"])  # type: ignore[call-overload]
                    self._last_request_id = max(self._last_request_id, request_id)
                    self._start(request_id, self._generate(message))
                case "stop":
                    self._mark.raise_to(int(message["request_id"]))  # type: ignore[call-overload]
                case "reset":
                    await self._reset(message)
                case "unload":
                    await self._unload()
        except ClutchError as error:
            self.report(error, None)

    def report(self, error: ClutchError, request_id: object) -> None:
        """Send `error` to the page."""
        self._platform.send("error", request_id=request_id, epoch=self._epoch, **error.to_wire())

    async def idle(self) -> None:
        """Wait until the running request has ended."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def _start(self, request_id: object, work: Awaitable[None]) -> None:
        """Run `work` as the one task; what it raises is reported."""

        async def guarded() -> None:
            try:
                await work
            except asyncio.CancelledError:
                pass
            except ClutchError as error:
                self.report(error, request_id)
            except Exception as error:
                traceback.print_exception(error)
                bug = InternalError(f"{type(error).__name__}: {error}", hint="This is a bug; reload the page.")
                self.report(bug, request_id)

        task = asyncio.ensure_future(guarded())
        if self._task is None or self._task.done():
            self._task = task

    async def _load(self, message: Message, file: object) -> None:
        if file is None and "url" not in message:
            raise RequestError("A load message needs a url or a file.", hint="Send one of the two.", field="url")
        self._lifecycle.begin_loading()
        try:
            source = (
                self._platform.open_file(file)
                if file is not None
                else await self._platform.open_url(str(message["url"]))
            )
            self._loaded = await load(self._platform, source, self._ledger, self._config)
            self._conversation = self._loaded.new_conversation()
        finally:
            self._lifecycle.to(EngineState.READY if self._loaded else EngineState.EMPTY)
        self._platform.send("loaded", ledger=self._ledger.to_wire(), **self._loaded.to_wire())

    async def _generate(self, message: Message) -> None:
        self._lifecycle.begin_generating()
        next_state = EngineState.READY
        try:
            assert self._conversation is not None
            await self._conversation.answer(message, self._platform, self._mark, self._ledger)
        except DeviceLost:
            next_state = EngineState.LOST
            raise
        finally:
            self._lifecycle.to(next_state)
            if next_state is EngineState.LOST:
                self._drop_model()

    async def _reset(self, message: Message) -> None:
        """Begin a new epoch: stop what runs, wait for its end, drop the pages, recreate the conversation."""
        self._epoch = int(message["epoch"])  # type: ignore[call-overload]
        if self.state in (EngineState.READY, EngineState.GENERATING):
            self._mark.raise_to(self._last_request_id)
            await self.idle()
        if self.state is not EngineState.READY:
            self.announce()
            return
        assert self._loaded is not None and self._conversation is not None
        self._lifecycle.to(EngineState.RESETTING)
        self._conversation.close()
        self._conversation = self._loaded.new_conversation()
        self._lifecycle.to(EngineState.READY)

    async def _unload(self) -> None:
        """Give the GPU back, whatever is going on."""
        if self._task is not None and not self._task.done():
            if self.state is EngineState.LOADING:
                self._task.cancel()
            self._mark.raise_to(self._last_request_id)
            await self.idle()
        if self.state is EngineState.READY:
            self._drop_model()

    def _drop_model(self) -> None:
        assert self._loaded is not None
        self._loaded.close()
        self._loaded = None
        self._conversation = None
        self._lifecycle.to(EngineState.EMPTY)

    def _send_state(self, state: EngineState) -> None:
        kv_length = self._conversation.kv_length if self._conversation else 0
        self._platform.send("state", state=str(state), epoch=self._epoch, kv_length=kv_length)
