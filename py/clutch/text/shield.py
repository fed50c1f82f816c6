"""Keeps control tokens that somebody typed apart from those that the chat template writes.

A template joins messages and control tokens to one string, after which nothing tells ``<|im_end|>`` of the
template from ``<|im_end|>`` of a user. So the messages are covered first: behind the first character of every
control token in them goes a mark. The mark is a lone surrogate, which well-formed text cannot contain, so
there is nothing to collide with. A text that ends like the beginning of a control token is marked there too,
or two messages could form one together.
"""

import re
from collections.abc import Iterable

_MARK = "\ud800"


class Shield:
    """Covers the given control tokens; those of a single character cannot be parsed, so they need none."""

    def __init__(self, controls: Iterable[str]) -> None:
        strings = sorted(string for string in controls if len(string) > 1)
        self._longest = max(map(len, strings), default=0)
        self._beginnings = {string[:length] for string in strings for length in range(1, len(string))}
        # A lookahead, so that overlapping tokens are all found.
        self._any = re.compile(f"(?={'|'.join(map(re.escape, strings)) or '(?!)'})")

    def cover(self, text: str) -> str:
        """Return well-formed text with a mark inside everything that reads like a control token."""
        starts = {match.start() for match in self._any.finditer(text)}
        tail = range(max(0, len(text) - self._longest + 1), len(text))
        starts.update(start for start in tail if text[start:] in self._beginnings)
        pieces = []
        end = 0
        for start in sorted(starts):
            pieces += [text[end : start + 1], _MARK]
            end = start + 1
        return "".join([*pieces, text[end:]])

    @staticmethod
    def uncover(text: str) -> str:
        """Return the text as it was before `cover`."""
        return text.replace(_MARK, "")
