"""How many tokens of a prompt one prefill step takes: as many as fit the time in which a Stop should be heard."""

from clutch.model.recipe import PREFILL_TOKENS_PER_THREAD

_ROOM_TO_GROW = 0.7


class ChunkSizer:
    """Sizes chunks by how long the last ones took; always whole multiples of what a thread takes.

    Args:
        most_tokens: the activations' room.
        target_ms: how long a chunk should take.
    """

    def __init__(self, most_tokens: int, target_ms: float) -> None:
        self.most_tokens = most_tokens
        self._target_ms = target_ms
        # The first chunk's time is not known yet: a quarter of the room is short even on a GPU that is much too slow.
        self.tokens = max(1, most_tokens // 4 // PREFILL_TOKENS_PER_THREAD) * PREFILL_TOKENS_PER_THREAD

    def observe(self, n_tokens: int, elapsed_ms: float) -> None:
        """Learn from a chunk. One that is shorter because the prompt ended says nothing."""
        if n_tokens < self.tokens:
            return
        tiles = n_tokens // PREFILL_TOKENS_PER_THREAD
        if elapsed_ms > self._target_ms:
            tiles = max(1, int(tiles * self._target_ms / elapsed_ms))
        elif elapsed_ms <= _ROOM_TO_GROW * self._target_ms:
            # Twice as many may take hardly longer: 8 tokens cost 15 ms of dispatches (measured, H200 in Chromium).
            tiles *= 2
        self.tokens = min(tiles * PREFILL_TOKENS_PER_THREAD, self.most_tokens)
