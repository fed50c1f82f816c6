"""A conversation: its last turn, and its place in the KV cache; thrown away whole at Reset, never field by field."""

import dataclasses
from collections.abc import Callable

from clutch.engine.answer import Answer
from clutch.engine.chunking import ChunkSizer
from clutch.engine.generation import Outcome, Request, generate
from clutch.engine.prompt import prompt_ids_of
from clutch.engine.session import Session
from clutch.engine.stats import Stats
from clutch.engine.stopping import Stopping
from clutch.engine.turn import Turn
from clutch.errors import RequestError
from clutch.kv.pool import Pool
from clutch.model.runner import Runner
from clutch.sampling.params import SamplingParams
from clutch.text.chat import ChatTemplate
from clutch.text.tokenizer import Tokenizer

MAX_TOP_LOGITS = 100


class Conversation:
    """Makes turns of messages, and runs them.

    Args:
        tokenizer, template: text to tokens.
        prompt_bytes: longest prompt, in UTF-8.
    """

    def __init__(self, tokenizer: Tokenizer, template: ChatTemplate, *, prompt_bytes: int) -> None:
        self.tokenizer = tokenizer
        self._template = template
        self._prompt_bytes = prompt_bytes
        self._turn: Turn | None = None

    def settle(self, runner: Runner, pool: Pool, chunks: ChunkSizer, *, context_length: int) -> None:
        """Take a place on a GPU; the cache is empty there, and the next turn fills it again from the tokens."""
        self._runner = runner
        self._chunks = chunks
        self.context_length = context_length
        self.session = Session(pool)

    @property
    def kv_length(self) -> int:
        """Positions whose keys and values are kept."""
        return self.session.table.length

    def close(self) -> None:
        """Drop its pages."""
        self.session.close()

    def ask(self, message: dict[str, object]) -> Turn:
        """Return the turn of a `generate` message.

        Raises:
            RequestError: the message or its prompt is wrong; nothing was computed, nothing is lost.
        """
        params = SamplingParams.from_wire(message["params"])  # type: ignore[arg-type]
        top_logits = message.get("top_logits", 0)
        if not isinstance(top_logits, int) or not 0 <= top_logits <= MAX_TOP_LOGITS:
            raise RequestError(f"top_logits is {top_logits}; allowed is 0 to {MAX_TOP_LOGITS}", field="top_logits")
        prompt_ids = prompt_ids_of(
            message,
            self.tokenizer,
            self._template,
            prompt_bytes=self._prompt_bytes,
            context_length=self.context_length,
        )
        self._turn = Turn(prompt_ids, params, top_logits)
        return self._turn

    def resume(self, message: dict[str, object]) -> Turn:
        """Return the last turn, to go on, for a `continue` message.

        Raises:
            RequestError: there is no answer to continue, or it is complete.
        """
        if self._turn is None:
            raise RequestError("There is no answer to continue.", hint="Ask something first.")
        changes = message.get("params", {})
        params = SamplingParams.from_wire({**dataclasses.asdict(self._turn.params), **changes})  # type: ignore[dict-item]
        self._turn.reopen(params, self.context_length)
        return self._turn

    async def run(
        self,
        turn: Turn,
        answer: Answer,
        stats: Stats,
        is_stopped: Callable[[], bool],
        on_prefill: Callable[[int, int], None],
    ) -> Outcome:
        """Run `turn` from where `answer` is.

        Raises:
            PoolExhausted, DeviceLost, DeviceTimeout: as for `generate`.
        """
        request = Request(
            prompt_ids=turn.prompt_ids,
            params=turn.params,
            stopping=Stopping(self.tokenizer.vocabulary.end_ids, turn.max_tokens, self.context_length),
            top_logits=turn.top_logits,
            is_stopped=is_stopped,
            on_prefill=on_prefill,
        )
        try:
            return await generate(request, self.session, self._runner, self._chunks, answer, stats)
        finally:
            turn.output_ids = list(answer.token_ids)

    def usage(self, turn: Turn, num_cached_tokens: int) -> dict[str, object]:
        """Return the JSON-able counts of a turn."""
        return {
            "prompt_tokens": len(turn.prompt_ids),
            "num_cached_tokens": num_cached_tokens,
            "completion_tokens": len(turn.output_ids),
            "kv_length": self.kv_length,
            "committed_tokens": len(self.session.token_ids),
            "context_length": self.context_length,
        }
