"""The engine: one model, several sessions; turns messages into events.

What takes long runs as a task of its session, so that every message is heard meanwhile. A lost GPU is fetched back in
the middle of whatever runs: the model is placed anew, and the conversations go on from their tokens.
"""

import asyncio
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from clutch.config import EngineConfig
from clutch.engine.benchmark import measure_step
from clutch.engine.control import Cancellation, Interrupted, SharedMark, StopMark
from clutch.engine.gauge import PoolGauge
from clutch.engine.generation import Outcome
from clutch.engine.host import GPU_FAILED, Host
from clutch.engine.lifecycle import EngineState
from clutch.engine.loading import Placement
from clutch.engine.platform import Platform
from clutch.engine.reply import Reply
from clutch.engine.session import Session
from clutch.engine.session_manager import Message, SessionManager
from clutch.engine.sessions import Sessions
from clutch.engine.work import Work
from clutch.errors import ClutchError, DeviceLost, InternalError, RequestError
from clutch.gpu.ledger import Ledger
from clutch.protocol import MAX_SESSIONS

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
        self._config = config
        self.ledger = Ledger()
        self.sessions = Sessions(platform)
        self.host = Host(platform, self.ledger, self.sessions, on_back=self._say_it_is_back, on_lost=self._notice_loss)
        self._gauge = PoolGauge(platform, lambda: self.host.pool, self.sessions.tables)
        self._manager = SessionManager(platform, self.sessions, self.host, self._gauge)
        # What belongs to no session: loads, and the way back of a GPU that nobody is using. Stopped from any session.
        self._work = Work()
        self._mark = StopMark(_highest(platform.shared_mark))
        self._cancellation: Cancellation | None = None
        self._last_load_id = 0

    @property
    def state(self) -> EngineState:
        """What the model is doing: EMPTY, LOADING, LOST or READY."""
        return self.sessions.model_state

    def announce(self) -> None:
        """Tell the page the states, first of all that the engine is up."""
        for session in self.sessions:
            session.announce()

    async def handle(self, message: Message, file: object = None) -> None:
        """Act on one decoded message; every failure becomes an `error` event."""
        number = message.get("session")
        try:
            match message["kind"]:
                case "load":
                    self._last_load_id = max(self._last_load_id, message["request_id"])
                    self._work.begin(self._guarded(self._load(message, file), message["request_id"]))
                case "unload":
                    await self._unload()
                case "open_session":
                    self._manager.open(message)
                case "list_saved":
                    self._work.begin(self._guarded(self._manager.shelf.show()))
                case "delete_saved":
                    self._work.begin(self._guarded(self._manager.shelf.delete(message["name"])))
                case _:
                    number = message.get("session", 0)
                    self._handle_in(self.sessions[number], message)
        except ClutchError as error:
            self.report(error, message.get("request_id"), number)
        except Exception as error:
            self._report_bug(error, message.get("request_id"), number)

    def _handle_in(self, session: Session, message: Message) -> None:
        match message["kind"]:
            case "generate" | "continue":
                session.number_request(message["request_id"])
                session.work.begin(self._guarded(self._answer(session, message), message["request_id"], session))
            case "benchmark":
                session.number_request(message["request_id"])
                session.work.begin(self._guarded(self._benchmark(session, message), message["request_id"], session))
            case "stop":
                self._stop(session, message["request_id"])
            case "reset":
                self._begin_reset(session, message)
            case "close_session":
                self._begin_close(session)
            case "save_session":
                self._begin_exclusive(session, self._manager.save(session, message))
            case "restore_session":
                self._begin_exclusive(session, self._manager.restore(session, message))

    def report(self, error: ClutchError, request_id: object, session: object = None, *, kind: str = "error") -> None:
        """Send `error` to the page, as an `error` or as a `notice`."""
        epoch = next((open.epoch for open in self.sessions if open.number == session), 0)
        self._platform.send(kind, request_id=request_id, session=session, epoch=epoch, **error.to_wire())

    def _report_bug(self, error: Exception, request_id: object, session: object) -> None:
        traceback.print_exception(error)
        bug = InternalError(f"{type(error).__name__}: {error}", hint="This is a bug; reload the page.")
        self.report(bug, request_id, session)

    async def _guarded(
        self, work: Coroutine[Any, Any, None], request_id: object = None, session: Session | None = None
    ) -> None:
        """Do `work`, unless its session was closed meanwhile; what it raises is reported."""
        number = session and session.number
        try:
            if session is not None:
                self.sessions.check_open(session)
            await work
        except ClutchError as error:
            self.report(error, request_id, number)
        except Exception as error:
            self._report_bug(error, request_id, number)
        finally:
            work.close()

    async def idle(self) -> None:
        """Wait until everything that runs, and what is still to be refused, has ended."""
        while tasks := self._tasks:
            await asyncio.wait(tasks)

    @property
    def _tasks(self) -> frozenset[asyncio.Task[None]]:
        return self._work.tasks.union(*(session.work.tasks for session in self.sessions))

    # Requests ---------------------------------------------------------------------------------------------------

    async def _load(self, message: Message, file: object) -> None:
        if file is None and "url" not in message:
            raise RequestError("A load message needs a url or a file.", hint="Send one of the two.", field="url")
        wishes = {
            "context_length": "asked_context_length",
            "pool_positions": "pool_positions",
            "kv_format": "kv_format",
        }
        config = replace(self._config, **{field: message[name] for name, field in wishes.items() if name in message})
        for session in self.sessions:
            session.lifecycle.begin_loading()
        cancellation = self._cancellation = Cancellation(message["request_id"], self._mark)
        try:
            source = (
                self._platform.open_file(file)
                if file is not None
                else await cancellation.waiting_for(self._platform.open_url(message["url"]))
            )
            await self.host.load(source, config, cancellation)
            self._gauge.show()
            self.sessions.enter(EngineState.READY)
        except Interrupted:
            self._reply(message, next(iter(self.sessions))).abort()
        finally:
            self._cancellation = None
            self._settle()

    async def _answer(self, session: Session, message: Message) -> None:
        session.lifecycle.begin_generating()
        cancellation = session.cancellation = Cancellation(message["request_id"], session.mark)
        conversation = session.conversation
        assert conversation is not None
        try:
            turn = conversation.ask(message) if message["kind"] == "generate" else conversation.resume(message)
            reply = self._reply(message, session)
            answer = reply.start(turn, conversation)
            outcome = Outcome()
            try:
                while True:
                    placement = self.host.placement
                    try:
                        outcome = await reply.stats.watch(
                            conversation.run(
                                turn,
                                answer,
                                reply.stats,
                                is_stopped=lambda: cancellation.is_stopped,
                                on_prefill=reply.prefilled,
                                on_trim=reply.trimmed,
                            )
                        )
                        break
                    except GPU_FAILED as failure:
                        await self.host.recover(placement, failure, cancellation)
            except Interrupted:
                answer.cut()
                turn.output_ids = list(answer.token_ids)
            turn.reason = outcome.reason
            # Acknowledged at once; what is in flight is discarded, and READY waits for it.
            reply.finish(outcome, answer, turn, conversation)
            await conversation.drain(outcome)
        finally:
            session.cancellation = None
            self._settle()

    async def _benchmark(self, session: Session, message: Message) -> None:
        for other in self.sessions:
            other.lifecycle.check_ready()
        session.lifecycle.begin_generating()
        cancellation = session.cancellation = Cancellation(message["request_id"], session.mark)
        reply = self._reply(message, session)
        placement, conversation = self.host.placement, session.conversation
        assert placement is not None and conversation is not None and conversation.sequence is not None
        try:
            try:
                step = await measure_step(
                    placement,
                    conversation.sequence,
                    message["tokens"],
                    is_stopped=lambda: cancellation.is_stopped,
                    on_progress=reply.measured,
                )
            except GPU_FAILED as failure:
                # The numbers are of a GPU that is gone.
                await self.host.recover(placement, failure, cancellation)
                raise
            reply.benchmarked(step)
        except Interrupted:
            reply.abort()
        finally:
            session.cancellation = None
            self._settle()

    def _reply(self, message: Message, session: Session) -> Reply:
        return Reply(
            self._platform,
            self.ledger,
            self._gauge,
            request_id=message["request_id"],
            session=session.number,
            epoch=message.get("epoch", session.epoch),
        )

    def _stop(self, session: Session, request_id: int) -> None:
        session.mark.raise_to(request_id)
        session.interrupt()
        self._mark.raise_to(request_id)
        if self._cancellation is None:
            return
        if self._cancellation.request_id == _NOBODY and request_id >= self._last_request_id:
            self._cancellation.cancel()
        self._cancellation.interrupt()

    @property
    def _last_request_id(self) -> int:
        return max(self._last_load_id, *(session.last_request_id for session in self.sessions), 0)

    async def _unload(self) -> None:
        """Give the GPU back, whatever is going on."""
        self._mark.raise_to(self._last_request_id)
        cancellations = [self._cancellation, *(session.cancellation for session in self.sessions)]
        for session in self.sessions:
            session.stop_all()
        for cancellation in cancellations:
            if cancellation is not None:
                cancellation.cancel()
        await self.idle()
        if self.state is EngineState.READY:
            self.host.drop()
            self.sessions.enter(EngineState.EMPTY)

    # Sessions ---------------------------------------------------------------------------------------------------

    def _begin_reset(self, session: Session, message: Message) -> None:
        # A load goes on, also one that was read in the same turn of the loop and has not begun. Only the mark: a GPU
        # that is on its way back is still wanted.
        if self.state not in (EngineState.LOADING, EngineState.EMPTY):
            session.stop_all()
        self._begin_exclusive(session, self._manager.reset(session, message))

    def _begin_close(self, session: Session) -> None:
        session.stop_all()
        session.interrupt()
        self._begin_exclusive(session, self._manager.close(session))

    def _begin_exclusive(self, session: Session, work: Coroutine[Any, Any, None]) -> None:
        session.work.begin_exclusive(self._guarded(work, None, session))

    # The GPU ----------------------------------------------------------------------------------------------------

    def _notice_loss(self, placement: Placement) -> None:
        """The browser says that a GPU is gone. A running request finds out by itself, unless it needs it no more."""
        if placement is not self.host.placement:
            return
        if running := self._tasks:
            next(iter(running)).add_done_callback(lambda _: self._notice_loss(placement))
        else:
            self._work.begin(self._guarded(self._recover(placement)))

    async def _recover(self, placement: Placement) -> None:
        cancellation = self._cancellation = Cancellation(_NOBODY, self._mark)
        try:
            await self.host.recover(
                placement, DeviceLost("The GPU was lost.", hint="Load the model again."), cancellation
            )
        except Interrupted:
            pass
        finally:
            self._cancellation = None
            self._settle()

    def _say_it_is_back(self) -> None:
        self.report(DeviceLost("The GPU was lost and is back; everything goes on."), None, kind="notice")
        self._gauge.show()

    def _settle(self) -> None:
        """After a request: what does not run is READY with a model on a GPU, and EMPTY without."""
        if self.host.is_coming_back:
            return
        if self.host.placement is None:
            self.host.drop()
            self.sessions.enter(EngineState.EMPTY)
            return
        for session in self.sessions:
            if session.cancellation is None and session.state is EngineState.GENERATING:
                self._gauge.show()
                session.lifecycle.to(EngineState.READY)


def _highest(shared: SharedMark | None) -> Callable[[], int] | None:
    """Return what reads the highest of all sessions' marks."""
    if shared is None:
        return None
    return lambda: max(map(shared.read, range(MAX_SESSIONS)))
