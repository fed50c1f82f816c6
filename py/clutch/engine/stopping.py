"""Why a generation ends.

A criterion looks at one new token and answers with a reason or None. This one knows the three that every
generation has; others answer the same question and are asked in turn.
"""

from dataclasses import dataclass
from typing import Literal

StopReason = Literal["stop", "length", "context_full"]


@dataclass(frozen=True)
class Stopping:
    """The limits of one generation.

    Args:
        end_ids: tokens with which the model ends its turn.
        max_tokens: that the request asked for.
        context_length: positions that the model and its cache have.
    """

    end_ids: frozenset[int]
    max_tokens: int
    context_length: int

    def check(self, token_id: int, n_generated: int, n_positions: int) -> StopReason | None:
        """Return why to end after this token, or None to go on.

        The model's own end comes first: an answer that is complete on its last permitted token was not cut.

        Args:
            token_id: the new token. n_generated: tokens of the answer, the new one included. n_positions:
            tokens of prompt and answer, the new one included; the next would take position n_positions.
        """
        if token_id in self.end_ids:
            return "stop"
        if n_generated >= self.max_tokens:
            return "length"
        if n_positions >= self.context_length:
            return "context_full"
        return None
