"""How sessions come and go: opened, copied, emptied, closed, saved, restored. What runs in them is the engine's."""

from typing import Any

from clutch.engine.conversation import Conversation
from clutch.engine.gauge import PoolGauge
from clutch.engine.host import Host
from clutch.engine.lifecycle import EngineState
from clutch.engine.platform import Platform
from clutch.engine.session import Session
from clutch.engine.sessions import Sessions
from clutch.engine.shelf import Shelf, refill, revived_turn

Message = dict[str, Any]


class SessionManager:
    """Does to sessions what the messages of `protocol.REQUESTS` ask.

    Args:
        platform: the outside world.
        sessions: that are open.
        host: of the model.
        gauge: of the pool.
    """

    def __init__(self, platform: Platform, sessions: Sessions, host: Host, gauge: PoolGauge) -> None:
        self.shelf = Shelf(platform)
        self._platform = platform
        self._sessions = sessions
        self._host = host
        self._gauge = gauge

    def open(self, message: Message) -> None:
        """Open a session, empty or as a copy of another: a copy shares the pages of the other.

        Raises:
            NoSuchSession, TooManySessions, BusyError, NotReadyError: why not.
        """
        source = message.get("source")
        origin = None if source is None else self._sessions[source]
        if origin is not None:
            origin.lifecycle.check_ready()
        session = self._sessions.open(message["session"], message["epoch"])
        if origin is not None and origin.conversation is not None:
            session.conversation = origin.conversation.fork(session.number)
        else:
            session.conversation = self._host.new_conversation(session)
        self._platform.send(
            "opened", session=session.number, epoch=session.epoch, source=source, kv_length=session.kv_length
        )
        self._gauge.show()
        session.announce()

    async def close(self, session: Session) -> None:
        """Close a session; its pages are free, as far as no other holds them.

        Raises:
            RequestError: it is the last.
        """
        self._sessions.close(session.number)
        self._forget(session)
        self._gauge.show()
        self._platform.send("closed", session=session.number)

    async def reset(self, session: Session, message: Message) -> None:
        """Begin a new epoch: drop the pages, recreate the conversation."""
        session.epoch = message["epoch"]
        if session.state is not EngineState.READY:
            self._renew(session)
            session.announce()
            return
        session.lifecycle.to(EngineState.RESETTING)
        try:
            self._renew(session)
            placement = self._host.placement
            if message.get("wipe") and placement is not None:
                placement.model.runner.wipe(placement.pool.unheld(), session.number)
        finally:
            self._gauge.show()
            session.lifecycle.to(EngineState.READY)

    async def save(self, session: Session, message: Message) -> None:
        """Keep a session in this browser.

        Raises:
            ClutchError: it is busy, or cannot be read or stored.
        """
        session.lifecycle.check_ready()
        conversation, file, placement = session.conversation, self._host.file, self._host.placement
        assert conversation is not None and file is not None and placement is not None
        await self.shelf.save(
            conversation,
            file,
            placement,
            name=message["name"],
            page=message["page"],
            with_kv=message.get("with_kv") is True,
        )

    async def restore(self, session: Session, message: Message) -> None:
        """Put what was saved in place of what a session holds; when that cannot be, it stays as it is.

        Raises:
            SavedSessionError: what was saved is damaged, or of another model.
            ClutchError: the session is busy, or it cannot be read.
        """
        session.lifecycle.check_ready()
        file, placement = self._host.file, self._host.placement
        assert file is not None and placement is not None
        saved = await self.shelf.fetch(message["name"], file, placement)
        turn = revived_turn(saved, file)
        session.epoch = message["epoch"]
        conversation = self._renew(session)
        assert conversation is not None
        conversation.turn = turn
        # The GPU may have been lost while the file was read.
        if conversation.sequence is not None and self._host.placement is placement:
            refill(conversation.sequence, saved, placement.model.runner, context_length=placement.context_length)
        self._platform.send(
            "restored",
            session=session.number,
            epoch=session.epoch,
            name=message["name"],
            page=saved.page,
            end=saved.reason,
            output_tokens=len(saved.output_ids),
            kv_length=session.kv_length,
        )
        self._gauge.show()
        session.announce()

    def _renew(self, session: Session) -> Conversation | None:
        self._forget(session)
        session.conversation = self._host.new_conversation(session)
        return session.conversation

    def _forget(self, session: Session) -> None:
        """Drop the conversation of `session`, and everything that could be found of it."""
        if session.conversation is not None:
            session.conversation.close()
            session.conversation = None
        if self._host.placement is not None:
            self._host.placement.pool.forget_cached()
        if self._host.file is not None:
            self._host.file.tokenizer.forget()
