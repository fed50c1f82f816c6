"""Keeps sessions in this browser and brings them back: tokens, settings, and the computed cache when it is wanted."""

import dataclasses

from clutch.engine.conversation import Conversation
from clutch.engine.loading import ModelFile, Placement
from clutch.engine.overflow import Overflow
from clutch.engine.platform import Platform
from clutch.engine.turn import Turn
from clutch.errors import PoolExhausted, RequestError, SavedSessionError
from clutch.formats.session_file import SavedSession, decode, encode
from clutch.kv.pool import PAGE_POSITIONS
from clutch.kv.sequence import Sequence
from clutch.model.runner import Runner
from clutch.sampling.params import SamplingParams


class Shelf:
    """Files of saved sessions.

    Args:
        platform: the outside world, with its store.
    """

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._store = platform.store

    async def show(self) -> None:
        """Tell the page what is there."""
        entries = await self._store.list()
        self._platform.send("saved", sessions=[{"name": name, "size_bytes": size} for name, size in entries])

    async def delete(self, name: str) -> None:
        """Throw a saved session away."""
        await self._store.delete(name)
        await self.show()

    async def save(
        self,
        conversation: Conversation,
        file: ModelFile,
        placement: Placement,
        *,
        name: str,
        page: dict[str, object],
        with_kv: bool,
    ) -> None:
        """Save `conversation` under `name`, with what the page wants to keep beside it.

        Raises:
            ClutchError: it cannot be read back from the GPU, or not be stored.
        """
        turn, sequence = conversation.turn, conversation.sequence
        assert sequence is not None
        kv_token_ids = list(sequence.token_ids) if with_kv else []
        # Held while it is read: nobody may take its pages.
        with sequence.pool.busy(sequence):
            pages = sequence.table.pages if with_kv else []
            kv_pages = [await placement.scheduler.read_page(page) for page in pages]
        saved = SavedSession(
            model_identity=file.head.identity,
            kv_format=placement.kv_format,
            prompt_ids=turn.prompt_ids if turn else [],
            output_ids=turn.output_ids if turn else [],
            params=dataclasses.asdict(turn.params if turn else SamplingParams()),
            messages=list(turn.chat.messages) if turn and turn.chat else None,
            overflow=str(turn.overflow if turn else Overflow.STOP),
            reason=turn.reason if turn else "",
            max_tokens=turn.max_tokens if turn else 0,
            kv_token_ids=kv_token_ids,
            page=page,
            kv_pages=kv_pages,
        )
        await self._store.write(name, encode(saved))
        await self.show()

    async def fetch(self, name: str, file: ModelFile, placement: Placement) -> SavedSession:
        """Return what was saved under `name`, checked against the model that is loaded.

        Raises:
            SavedSessionError: it is not there, damaged, or of another model.
        """
        return decode(
            await self._store.read(name),
            model_identity=file.head.identity,
            n_vocab=file.head.spec.vocab_size,
            kv_format=placement.kv_format,
            page_bytes=placement.model.runner.page_bytes,
        )


def revived_turn(saved: SavedSession, file: ModelFile) -> Turn | None:
    """Return the turn that was saved, if there was one.

    Raises:
        SavedSessionError: it was saved with parameters that there are not.
    """
    if not saved.prompt_ids:
        return None
    try:
        params = SamplingParams.from_wire(saved.params)
    except RequestError as refused:
        raise SavedSessionError(
            f"The saved session cannot be restored: {refused.message}.",
            hint="Delete it; it cannot be restored.",
            cause="damaged",
            field="params",
        ) from refused
    return Turn(
        prompt_ids=saved.prompt_ids,
        params=params,
        chat=None if saved.messages is None else file.prompter.chat_of(saved.messages),
        overflow=Overflow(saved.overflow),
        output_ids=saved.output_ids,
        reason=saved.reason,
        max_tokens=saved.max_tokens,
    )


def refill(sequence: Sequence, saved: SavedSession, runner: Runner, *, context_length: int) -> None:
    """Write the saved keys and values into the pool; where there is no room, they are computed when they are needed."""
    n_positions = len(saved.kv_token_ids)
    if not n_positions or n_positions > context_length:
        return
    try:
        sequence.reserve(n_positions)
    except PoolExhausted:
        return
    for page, data in zip(sequence.table.pages, saved.kv_pages[: -(-n_positions // PAGE_POSITIONS)], strict=True):
        runner.write_page(page, data)
    sequence.commit(saved.kv_token_ids)
