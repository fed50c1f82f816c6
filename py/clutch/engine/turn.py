"""A turn: a question and its answer, which may be stopped and continued, and which outlives the GPU."""

from dataclasses import dataclass, field

from clutch.errors import ContextLengthError, RequestError
from clutch.sampling.params import SamplingParams


@dataclass
class Turn:
    """What a turn is about and how far it has come.

    Args:
        prompt_ids: the whole prompt.
        params: how to sample.
        top_logits: how many of the first token's logits were asked for.
        output_ids: the answer so far.
        reason: why it ended last time, "" while it runs.
        max_tokens: most tokens of the answer in all.
    """

    prompt_ids: list[int]
    params: SamplingParams
    top_logits: int = 0
    output_ids: list[int] = field(default_factory=list)
    reason: str = ""
    max_tokens: int = 0

    def __post_init__(self) -> None:
        self.max_tokens = self.max_tokens or self.params.max_tokens

    def reopen(self, params: SamplingParams, context_length: int) -> None:
        """Let the answer go on; when it had reached its limit, for as many tokens again.

        Raises:
            RequestError: the model itself ended the answer.
            ContextLengthError: there is no room for another token.
        """
        if self.reason == "stop":
            raise RequestError("The answer is complete; there is nothing to continue.", hint="Ask something new.")
        n_positions = len(self.prompt_ids) + len(self.output_ids)
        if n_positions >= context_length:
            raise ContextLengthError(
                f"Question and answer have {n_positions} tokens; the context has room for {context_length}.",
                hint="Reset the conversation.",
                prompt_tokens=n_positions,
                context_length=context_length,
            )
        self.params = params
        self.top_logits = 0
        self.max_tokens = max(self.max_tokens, params.max_tokens)
        if len(self.output_ids) >= self.max_tokens:
            self.max_tokens = len(self.output_ids) + params.max_tokens
        self.reason = ""
