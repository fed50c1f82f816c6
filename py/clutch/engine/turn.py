"""A turn: a question and its answer, which may be stopped and continued, and which outlives the GPU."""

from dataclasses import dataclass, field, replace

from clutch.engine.overflow import Chat, Overflow
from clutch.engine.prompt import room_for
from clutch.errors import ContextLengthError, RequestError
from clutch.sampling.params import SamplingParams


@dataclass
class Turn:
    """What a turn is about and how far it has come.

    Args:
        prompt_ids: the whole prompt.
        params: how to sample.
        chat: what the prompt was made of; None for a raw prompt.
        overflow: what happens when the context is full.
        top_logits: how many of the first token's logits were asked for.
        reuse: whether keys and values of before may be used.
        ignore_eos: the model's own end is no end.
        output_ids: the answer so far.
        reason: why it ended last time, "" while it runs.
        max_tokens: most tokens of the answer in all.
    """

    prompt_ids: list[int]
    params: SamplingParams
    chat: Chat | None = None
    overflow: Overflow = Overflow.STOP
    top_logits: int = 0
    reuse: bool = True
    ignore_eos: bool = False
    output_ids: list[int] = field(default_factory=list)
    reason: str = ""
    max_tokens: int = 0

    def __post_init__(self) -> None:
        self.max_tokens = self.max_tokens or self.params.max_tokens

    @property
    def n_positions(self) -> int:
        """Tokens of question and answer."""
        return len(self.prompt_ids) + len(self.output_ids)

    def copy(self) -> "Turn":
        """Return a turn that goes its own way from here."""
        return replace(self, output_ids=list(self.output_ids))

    def reopen(self, params: SamplingParams, context_length: int) -> None:
        """Let the answer go on; when it had reached its limit, for as many tokens again.

        Raises:
            RequestError: the model itself ended the answer.
            ContextLengthError: there is no room for another token.
        """
        if self.reason == "stop":
            raise RequestError("The answer is complete; there is nothing to continue.", hint="Ask something new.")
        if self.n_positions >= context_length and self.overflow is Overflow.STOP:
            raise ContextLengthError(
                f"Question and answer have {self.n_positions} tokens; the context has room for {context_length}.",
                hint="Reset the conversation.",
                prompt_tokens=self.n_positions,
                context_length=context_length,
            )
        self.params = params
        self.top_logits = 0
        self.reuse = True
        self.max_tokens = max(self.max_tokens, params.max_tokens)
        if len(self.output_ids) >= self.max_tokens:
            self.max_tokens = len(self.output_ids) + params.max_tokens
        self.reason = ""

    def make_room(self, context_length: int) -> bool:
        """Leave the chat's oldest turns out, if that was asked for; return whether there is room now."""
        if self.overflow is Overflow.DROP_OLDEST and self.chat is not None:
            n_output = len(self.output_ids)
            room = room_for(self.max_tokens - n_output, context_length)
            self.chat, self.prompt_ids = self.chat.within(context_length - n_output - room)
        return self.n_positions < context_length
