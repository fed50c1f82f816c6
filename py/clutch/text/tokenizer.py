"""Text to token ids: special tokens are split off here, the rest goes to a plain BPE encoder.

The encoder is passed in (a WASM library in the browser, a native one in the tests) and never sees a special
token. Splitting is leftmost, then longest, in one pass over the text: the pattern is an alternation of
literal strings.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from clutch.text.piecewise import PiecewiseEncoder
from clutch.text.shield import Shield
from clutch.text.vocabulary import Vocabulary


def well_formed(text: str) -> str:
    """Return the text with surrogate pairs joined and each lone surrogate replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class Tokenizer:
    """The encoder of one vocabulary.

    Args:
        vocabulary: of the model.
        encode_plain: byte-level BPE of well-formed text, blind to special tokens; never called with "".
    """

    def __init__(self, vocabulary: Vocabulary, encode_plain: Callable[[str], list[int]]) -> None:
        self.vocabulary = vocabulary
        self._encode_plain = PiecewiseEncoder(encode_plain)
        self._special_ids = {**vocabulary.user_defined, **vocabulary.control}
        self._every_special = _any_of(self._special_ids)
        self._user_defined = _any_of(vocabulary.user_defined)

    @cached_property
    def shield(self) -> Shield:
        """What keeps control tokens written in messages from being read as such."""
        return Shield(self.vocabulary.control)

    def forget(self) -> None:
        """Drop the texts that are remembered from before."""
        self._encode_plain.forget()

    def encode(self, text: str, *, parse_special: bool = True) -> list[int]:
        """Return the ids of a text.

        Args:
            text: any string; lone surrogates count as U+FFFD.
            parse_special: read control tokens in the text as such; user-defined tokens always are.
        """
        token_ids: list[int] = []
        for piece, token_id in self.split(well_formed(text), parse_special=parse_special):
            if token_id is None:
                token_ids += self._encode_plain(piece)
            else:
                token_ids.append(token_id)
        return token_ids

    def encode_prompt(self, text: str) -> list[int]:
        """Return the ids of a raw prompt, with one bos in front where the model wants it."""
        token_ids = self.encode(text)
        bos_id = self.vocabulary.bos_id
        if not self.vocabulary.adds_bos or bos_id is None or token_ids[:1] == [bos_id]:
            return token_ids
        return [bos_id, *token_ids]

    def split(self, text: str, *, parse_special: bool = True) -> Iterator[tuple[str, int | None]]:
        """Yield the text piece by piece, none empty: (plain text, None) or (special token, its id)."""
        end = 0
        for match in (self._every_special if parse_special else self._user_defined).finditer(text):
            if match.start() > end:
                yield text[end : match.start()], None
            yield match[0], self._special_ids[match[0]]
            end = match.end()
        if end < len(text):
            yield text[end:], None


def _any_of(strings: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of any of the strings, longest first, that never matches when there are none.

    Strings of fewer than two characters are left out: as special tokens they would swallow ordinary text.
    """
    longest_first = sorted((string for string in strings if len(string) > 1), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
