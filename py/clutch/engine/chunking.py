"""How many tokens of a prompt one prefill step takes: as many as fit the time in which a Stop should be heard."""

from clutch.model.runner import PREFILL_TOKENS_PER_THREAD


class ChunkSizer:
    """Sizes chunks by how long the last ones took; always whole multiples of what a thread takes.

    Args:
        most_tokens: the activations' room.
        target_ms: how long a chunk should take.
    """

    def __init__(self, most_tokens: int, target_ms: float) -> None:
        self._most_tokens = most_tokens
        self._target_ms = target_ms
        self.tokens = PREFILL_TOKENS_PER_THREAD

    def observe(self, n_tokens: int, elapsed_ms: float) -> None:
        """Learn from a chunk; at most twice as many tokens next time, because the first chunks are untypical."""
        tiles = -(-n_tokens // PREFILL_TOKENS_PER_THREAD)
        fitting = int(tiles * self._target_ms / max(elapsed_ms, 0.001))
        tiles = max(1, min(fitting, 2 * tiles))
        self.tokens = min(tiles * PREFILL_TOKENS_PER_THREAD, self._most_tokens)
