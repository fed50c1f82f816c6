"""Encodes a text piece by piece and remembers the pieces: what a conversation has said before is not encoded again.

A text is cut behind a letter of ASCII, in front of a space or a line break. No pre-tokenizer of `tokenizer_json` makes
a piece with both in it or looks back across that place, and Unicode normalisation joins nothing to a space; so the ids
of the parts, one behind the other, are the ids of the whole (compared in tests/unit/test_piecewise.py). Where a cut
falls depends only on what stands before it: texts with a common beginning have their first pieces in common.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

# Least characters of a piece that is not the last. A call of the encoder costs as much as some fifty.
PIECE_CHARS = 1024
_MOST_PIECE_CHARS = 4 * PIECE_CHARS
_MOST_PIECES = 256
_CUT = re.compile("[A-Za-z](?=[ \n])")


class PiecewiseEncoder:
    """An encoder of plain text with a memory of at most 1 MiB of text.

    Args:
        encode: as `Tokenizer` takes it.
    """

    def __init__(self, encode: Callable[[str], list[int]]) -> None:
        self._encode = encode
        self._remembered = lru_cache(_MOST_PIECES)(encode)

    def __call__(self, text: str) -> list[int]:
        """Return the ids of a text."""
        token_ids: list[int] = []
        for piece in pieces(text):
            # Hardly ever: a text without a place to cut.
            encode = self._remembered if len(piece) <= _MOST_PIECE_CHARS else self._encode
            token_ids += encode(piece)
        return token_ids

    def forget(self) -> None:
        """Drop the pieces."""
        self._remembered.cache_clear()


def pieces(text: str) -> Iterator[str]:
    """Yield the pieces of a text, none empty unless it is."""
    start = 0
    while cut := _CUT.search(text, start + PIECE_CHARS - 1):
        yield text[start : cut.end()]
        start = cut.end()
    yield text[start:]
