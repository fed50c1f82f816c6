"""The engine: holds at most one model and one conversation, and turns messages into events.

What takes long runs as the one task, so that `stop`, `reset` and `unload` are heard meanwhile. A lost GPU is fetched
back in the middle of whatever runs: the model is placed anew, and the conversation goes on from its tokens.
"""

import asyncio
import traceback
from collections.abc import Awaitable
from dataclasses import replace

from clutch.config import EngineConfig
from clutch.engine.control import Cancellation, Interrupted, StopMark
from clutch.engine.conversation import Conversation
from clutch.engine.generation import Outcome
from clutch.engine.lifecycle import EngineState, Lifecycle
from clutch.engine.loading import ModelFile, Placement, open_model_file, place
from clutch.engine.platform import Platform
from clutch.engine.recovery import Recoveries
from clutch.engine.reply import Reply
from clutch.errors import ClutchError, DeviceLost, DeviceTimeout, InternalError, RequestError
from clutch.gpu.ledger import Ledger

Message = dict[str, object]

GPU_FAILED = (DeviceLost, DeviceTimeout)

# The number of what no request asked for: higher than any mark.
_NOBODY = 1 << 62


class Engine:
    """Answers the messages of `protocol.REQUESTS`.

    Args:
        platform: the outside world.
        config: budgets.
    """

    def __init__(self, platform: Platform, config: EngineConfig) -> None:
        self._platform = platform
        self._config = self._budgets = config
        self.ledger = Ledger()
        self._mark = StopMark(platform.shared_mark)
        self._lifecycle = Lifecycle(self._send_state)
        self._recoveries = Recoveries(platform.clock)
        self._epoch = 0
        self._last_request_id = 0
        self._file: ModelFile | None = None
        self._placement: Placement | None = None
        self._conversation: Conversation | None = None
        self._cancellation: Cancellation | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def state(self) -> EngineState:
        """What it is doing."""
        return self._lifecycle.state

    def announce(self) -> None:
        """Tell the page the state, first of all that the engine is up."""
        self._send_state(self.state)

    async def handle(self, message: Message, file: object = None) -> None:
        """Act on one decoded message; every failure becomes an `error` event."""
        try:
            match message["kind"]:
                case "load":
                    self._begin(message, self._load(message, file))
                case "generate" | "continue":
                    self._begin(message, self._answer(message))
                case "stop":
                    self._stop(_integer(message, "request_id"))
                case "reset":
                    await self._reset(message)
                case "unload":
                    await self._unload()
        except ClutchError as error:
            self.report(error, None)
        except Exception as error:
            self._report_bug(error, None)

    def report(self, error: ClutchError, request_id: object, *, kind: str = "error") -> None:
        """Send `error` to the page, as an `error` or as a `notice`."""
        self._platform.send(kind, request_id=request_id, epoch=self._epoch, **error.to_wire())

    def _report_bug(self, error: Exception, request_id: object) -> None:
        traceback.print_exception(error)
        bug = InternalError(f"{type(error).__name__}: {error}", hint="This is a bug; reload the page.")
        self.report(bug, request_id)

    async def idle(self) -> None:
        """Wait until the running request, and those that are still to be refused, have ended."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    # Requests ---------------------------------------------------------------------------------------------------

    def _begin(self, message: Message, work: Awaitable[None]) -> None:
        # Noted before the task runs: a reset or unload in the same turn of the loop must stop it too.
        request_id = _integer(message, "request_id")
        self._last_request_id = max(self._last_request_id, request_id)
        self._spawn(request_id, work)

    def _spawn(self, request_id: int | None, work: Awaitable[None]) -> None:
        """Run `work`, the one task unless its first act is to be refused; what it raises is reported."""

        async def guarded() -> None:
            try:
                await work
            except ClutchError as error:
                self.report(error, request_id)
            except Exception as error:
                self._report_bug(error, request_id)

        task = asyncio.ensure_future(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _stop(self, request_id: int) -> None:
        self._mark.raise_to(request_id)
        if self._cancellation is None:
            return
        if self._cancellation.request_id == _NOBODY and request_id >= self._last_request_id:
            self._cancellation.cancel()
        self._cancellation.interrupt()

    async def _load(self, message: Message, file: object) -> None:
        if file is None and "url" not in message:
            raise RequestError("A load message needs a url or a file.", hint="Send one of the two.", field="url")
        self._lifecycle.begin_loading()
        reply, cancellation = self._accept(message)
        try:
            await cancellation.waiting_for(self._open(message, file))
            await self._placed(cancellation, EngineState.LOADING)
            self._lifecycle.to(EngineState.READY)
        except Interrupted:
            reply.abort()
        finally:
            self._settle()

    async def _answer(self, message: Message) -> None:
        self._lifecycle.begin_generating()
        reply, cancellation = self._accept(message)
        conversation = self._conversation
        assert conversation is not None
        try:
            turn = conversation.ask(message) if message["kind"] == "generate" else conversation.resume(message)
            answer = reply.start(turn, conversation)
            outcome = Outcome()
            try:
                while True:
                    try:
                        outcome = await conversation.run(
                            turn, answer, reply.stats, lambda: cancellation.is_stopped, reply.prefilled
                        )
                        break
                    except GPU_FAILED as failure:
                        self._lose(failure)
                        await self._placed(cancellation, EngineState.GENERATING)
            except Interrupted:
                answer.cut()
                turn.output_ids = list(answer.token_ids)
            turn.reason = outcome.reason
            # Acknowledged at once; what is in flight is discarded, and READY waits for it.
            reply.finish(outcome, answer, turn, conversation)
            await outcome.drain()
        finally:
            self._settle()

    def _accept(self, message: Message) -> tuple[Reply, Cancellation]:
        request_id = _integer(message, "request_id")
        epoch = _integer(message, "epoch") if "epoch" in message else self._epoch
        self._cancellation = Cancellation(request_id, self._mark)
        return Reply(self._platform, self.ledger, request_id=request_id, epoch=epoch), self._cancellation

    async def _open(self, message: Message, file: object) -> None:
        self._budgets = self._config
        source = (
            self._platform.open_file(file) if file is not None else await self._platform.open_url(str(message["url"]))
        )
        if "context_length" in message:
            self._budgets = replace(self._config, context_length=_integer(message, "context_length"))
        self._file = await open_model_file(self._platform, source)
        self._conversation = self._new_conversation()

    async def _reset(self, message: Message) -> None:
        """Begin a new epoch: stop what runs, wait for its end, drop the pages, recreate the conversation."""
        self._epoch = _integer(message, "epoch")
        # A load goes on, also one that was read in the same turn of the loop and has not begun.
        if self.state not in (EngineState.LOADING, EngineState.EMPTY):
            # Only the mark: a GPU that is on its way back is still wanted.
            self._mark.raise_to(self._last_request_id)
            await self.idle()
        if self.state is not EngineState.READY:
            self.announce()
            return
        assert self._conversation is not None and self._placement is not None
        self._lifecycle.to(EngineState.RESETTING)
        self._conversation.close()
        self._conversation = self._new_conversation()
        self._placement.settle(self._conversation)
        try:
            if message.get("wipe"):
                self._placement.model.runner.wipe()
        finally:
            self._lifecycle.to(EngineState.READY)

    async def _unload(self) -> None:
        """Give the GPU back, whatever is going on."""
        self._mark.raise_to(self._last_request_id)
        if self._cancellation is not None:
            self._cancellation.cancel()
        await self.idle()
        if self.state is EngineState.READY:
            self._drop()
            self._lifecycle.to(EngineState.EMPTY)

    # The GPU ----------------------------------------------------------------------------------------------------

    async def _placed(self, cancellation: Cancellation, next_state: EngineState) -> None:
        """Place the model on a new device, and on another when that one is lost as well.

        Raises:
            Interrupted: the request was stopped.
            ClutchError: it cannot be placed.
        """
        while True:
            was_lost = self.state is EngineState.LOST
            try:
                await cancellation.waiting_for(self._place())
                break
            except GPU_FAILED as failure:
                self._lose(failure)
        if was_lost:
            self._lifecycle.to(next_state)
            back = DeviceLost("The GPU was lost and is back; everything goes on.")
            self.report(back, None if cancellation.request_id == _NOBODY else cancellation.request_id, kind="notice")

    async def _place(self) -> None:
        file, conversation = self._file, self._conversation
        assert file is not None and conversation is not None
        placement = self._placement = await place(self._platform, file, self.ledger, self._budgets)
        placement.settle(conversation)
        placement.device.on_lost(lambda: self._notice_loss(placement))
        self._platform.send(
            "loaded",
            model={**file.to_wire(), "context_length": placement.context_length},
            memory=placement.model.memory.to_wire(),
            ledger=self.ledger.to_wire(),
            timings=placement.model.timings,
            self_test=placement.model.self_test,
        )

    def _lose(self, failure: ClutchError) -> None:
        """Give up a lost GPU; a new one is asked for next.

        Raises:
            DeviceLost, DeviceTimeout: it has been lost too often.
        """
        if self.state is not EngineState.LOST:
            self._lifecycle.to(EngineState.LOST)
        self._drop_placement()
        if not self._recoveries.begin():
            raise failure

    def _notice_loss(self, placement: Placement) -> None:
        """The browser says that a GPU is gone. A running request finds out by itself, unless it needs it no more."""
        if placement is not self._placement:
            return
        if self.state is EngineState.READY:
            self._spawn(None, self._recover(placement))
        elif self._tasks:
            next(iter(self._tasks)).add_done_callback(lambda _: self._notice_loss(placement))

    async def _recover(self, placement: Placement) -> None:
        if self.state is not EngineState.READY or placement is not self._placement:
            # A request or an unload of the same turn was first.
            self._notice_loss(placement)
            return
        cancellation = self._cancellation = Cancellation(_NOBODY, self._mark)
        try:
            self._lose(DeviceLost("The GPU was lost.", hint="Load the model again."))
            await self._placed(cancellation, EngineState.READY)
        except Interrupted:
            pass
        finally:
            self._settle()

    def _settle(self) -> None:
        """End a request: READY with a model on a GPU, EMPTY without."""
        self._cancellation = None
        if self._placement is None:
            self._drop()
        target = EngineState.READY if self._placement else EngineState.EMPTY
        if self.state is not target:
            self._lifecycle.to(target)

    def _drop_placement(self) -> None:
        if self._placement is not None:
            self._placement.close()
            self._placement = None

    def _drop(self) -> None:
        self._drop_placement()
        self._file = None
        self._conversation = None

    def _new_conversation(self) -> Conversation:
        assert self._file is not None
        return Conversation(self._file.tokenizer, self._file.template, prompt_bytes=self._config.prompt_bytes)

    def _send_state(self, state: EngineState) -> None:
        kv_length = self._conversation.kv_length if self._placement and self._conversation else 0
        self._platform.send("state", state=str(state), epoch=self._epoch, kv_length=kv_length)


def _integer(message: Message, name: str) -> int:
    value = message[name]
    assert isinstance(value, int), name
    return value
