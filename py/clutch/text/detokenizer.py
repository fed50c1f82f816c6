"""Token ids to text, one token at a time, never showing half a character.

Tokens are bytes, and a character may be spread over several of them. Python's incremental decoder holds back
what is not complete; bytes that can never become a character turn into U+FFFD. All deltas and `finish`
together equal the decoding of all bytes at once (property-tested in tests/unit/test_detokenizer.py).
"""

import codecs
from collections.abc import Iterable

from clutch.text.vocabulary import TokenType, Vocabulary

_HIDDEN = frozenset({TokenType.CONTROL, TokenType.UNKNOWN})


class Detokenizer:
    """The text of one answer; make a new one for the next."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token_id: int) -> str:
        """Return the text that this token completes; control tokens show nothing."""
        return self._decoder.decode(_shown_bytes(self._vocabulary, token_id))

    def finish(self) -> str:
        """Return what was held back: "" or U+FFFD for a character that never became complete."""
        return self._decoder.decode(b"", final=True)


def decode_all(vocabulary: Vocabulary, token_ids: Iterable[int]) -> str:
    """Return the text of a whole answer."""
    shown = b"".join(_shown_bytes(vocabulary, token_id) for token_id in token_ids)
    return shown.decode("utf-8", "replace")


def _shown_bytes(vocabulary: Vocabulary, token_id: int) -> bytes:
    return b"" if vocabulary.types[token_id] in _HIDDEN else vocabulary.token_bytes(token_id)
