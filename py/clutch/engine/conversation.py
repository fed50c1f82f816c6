"""A conversation: its last turn, and its place in the KV cache; thrown away whole at Reset, never field by field."""

import dataclasses
from collections.abc import Callable

from clutch.engine.answer import Answer
from clutch.engine.generation import Outcome, Request, generate
from clutch.engine.loading import ModelFile, Placement
from clutch.engine.overflow import Overflow
from clutch.engine.stats import Stats
from clutch.engine.stopping import Stopping
from clutch.engine.turn import Turn
from clutch.errors import RequestError
from clutch.kv.sequence import Sequence
from clutch.sampling.params import SamplingParams

MAX_TOP_LOGITS = 100


class Conversation:
    """Makes turns of messages, and runs them.

    Args:
        file: of the model; text to tokens.
        slot: the session's place on the GPU.
    """

    def __init__(self, file: ModelFile, slot: int) -> None:
        self.vocabulary = file.tokenizer.vocabulary
        self.turn: Turn | None = None
        self.sequence: Sequence | None = None
        self._file = file
        self._slot = slot

    def settle(self, placement: Placement) -> None:
        """Take a place on a GPU; the cache is empty there, and the next turn fills it again from the tokens."""
        self._placement = placement
        self.sequence = Sequence(placement.pool, self._slot)

    @property
    def kv_length(self) -> int:
        """Positions whose keys and values are kept."""
        return self.sequence.length if self.sequence else 0

    @property
    def context_length(self) -> int:
        """Positions that it may have."""
        return self._placement.context_length

    def close(self) -> None:
        """Drop its pages."""
        if self.sequence:
            self.sequence.close()

    def fork(self, slot: int) -> "Conversation":
        """Return a conversation that goes on from here by itself; it shares this one's pages."""
        other = Conversation(self._file, slot)
        other.turn = self.turn and self.turn.copy()
        if self.sequence:
            other._placement = self._placement
            other.sequence = self.sequence.fork(slot)
        return other

    def ask(self, message: dict[str, object]) -> Turn:
        """Return the turn of a `generate` message.

        Raises:
            RequestError: the message or its prompt is wrong; nothing was computed, nothing is lost.
        """
        params = SamplingParams.from_wire(message["params"])  # type: ignore[arg-type]
        top_logits = message.get("top_logits", 0)
        if not isinstance(top_logits, int) or not 0 <= top_logits <= MAX_TOP_LOGITS:
            raise RequestError(f"top_logits is {top_logits}; allowed is 0 to {MAX_TOP_LOGITS}", field="top_logits")
        overflow = _overflow(message.get("overflow", Overflow.STOP))
        prompt_ids, chat = self._file.prompter.read(
            message, overflow, max_tokens=params.max_tokens, context_length=self.context_length
        )
        self.turn = Turn(
            prompt_ids,
            params,
            chat,
            overflow,
            top_logits,
            reuse=message.get("reuse", True) is True,
            ignore_eos=message.get("ignore_eos") is True,
        )
        return self.turn

    def resume(self, message: dict[str, object]) -> Turn:
        """Return the last turn, to go on, for a `continue` message.

        Raises:
            RequestError: there is no answer to continue, or it is complete.
        """
        if self.turn is None:
            raise RequestError("There is no answer to continue.", hint="Ask something first.")
        changes = message.get("params", {})
        params = SamplingParams.from_wire({**dataclasses.asdict(self.turn.params), **changes})  # type: ignore[dict-item]
        self.turn.reopen(params, self.context_length)
        return self.turn

    async def run(
        self,
        turn: Turn,
        answer: Answer,
        stats: Stats,
        *,
        is_stopped: Callable[[], bool],
        on_prefill: Callable[[int, int], None],
        on_trim: Callable[[Turn], None],
    ) -> Outcome:
        """Run `turn` from where `answer` is; where the context is full, without its oldest turns if that was asked for.

        Raises:
            PoolExhausted, DeviceLost, DeviceTimeout: as for `generate`.
        """
        assert self.sequence is not None
        end_ids = frozenset[int]() if turn.ignore_eos else self.vocabulary.end_ids
        while True:
            request = Request(
                prompt_ids=turn.prompt_ids,
                params=turn.params,
                stopping=Stopping(end_ids, turn.max_tokens, self.context_length),
                top_logits=turn.top_logits,
                reuse=turn.reuse,
                is_stopped=is_stopped,
                on_prefill=on_prefill,
            )
            outcome = Outcome("context_full")
            if turn.n_positions < self.context_length:
                try:
                    outcome = await generate(
                        request, self.sequence, self._placement.scheduler, self._placement.chunks, answer, stats
                    )
                finally:
                    turn.output_ids = list(answer.token_ids)
            if outcome.reason != "context_full" or not turn.make_room(self.context_length):
                return outcome
            await self.drain(outcome)
            on_trim(turn)

    async def drain(self, outcome: Outcome) -> None:
        """Wait until the GPU has done what was submitted for `outcome`."""
        if outcome.lane is not None:
            await self._placement.scheduler.drain(outcome.lane)

    def usage(self, turn: Turn, num_cached_tokens: int) -> dict[str, object]:
        """Return the JSON-able counts of a turn."""
        assert self.sequence is not None
        return {
            "prompt_tokens": len(turn.prompt_ids),
            "num_cached_tokens": num_cached_tokens,
            "completion_tokens": len(turn.output_ids),
            "kv_length": self.kv_length,
            "committed_tokens": len(self.sequence.token_ids),
            "context_length": self.context_length,
        }


def _overflow(name: object) -> Overflow:
    try:
        return Overflow(str(name))
    except ValueError:
        known = ", ".join(Overflow)
        raise RequestError(f"overflow is {name!r}; known: {known}.", field="overflow") from None
