"""A conversation's place in the KV cache: the committed tokens and the pages that hold their keys and values."""

from collections.abc import Sequence

from clutch.kv.pool import Pool
from clutch.kv.table import BlockTable


class Session:
    """Committed tokens and their pages; `len(token_ids) == table.length` after every request.

    Args:
        pool: where the pages come from.
    """

    def __init__(self, pool: Pool) -> None:
        self.token_ids: list[int] = []
        self.table = BlockTable(pool)

    def match(self, prompt_ids: Sequence[int]) -> int:
        """Return how many leading tokens of `prompt_ids` already have their keys and values.

        Never all of them: the last token is always computed again, because its logits are needed.
        """
        most = min(len(self.token_ids), len(prompt_ids) - 1)
        return next((i for i in range(most) if self.token_ids[i] != prompt_ids[i]), most)

    def commit(self, token_ids: Sequence[int]) -> None:
        """Keep the next positions: their keys and values are computed."""
        self.token_ids += token_ids
        self.table.commit(len(token_ids))

    def rewind(self, length: int) -> None:
        """Forget everything behind the first `length` tokens."""
        del self.token_ids[length:]
        self.table.truncate(length)

    def close(self) -> None:
        """Drop every page."""
        self.rewind(0)
