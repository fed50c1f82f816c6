"""The operations of a chat template that can make much out of little; each asks the meter before it does."""

import json
from collections.abc import Iterable, Sized
from typing import Any

from jinja2 import Undefined
from jinja2.exceptions import SecurityError

from clutch.text.template_meter import Meter

MAX_INTEGER_BITS = 256
MAX_INDENT = 16


class Operations:
    """Text and arithmetic on one meter."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def text(self, value: object) -> str:
        """Return a value as a template writes it; lists, which may share parts without end, have no text."""
        if value is None or isinstance(value, str | int | float | Undefined):
            return str(value)
        raise TypeError(f"a template can write text and numbers, not a {type(value).__name__}")

    def replace(self, text: str, old: str, new: str, count: int | None = None) -> str:
        """Return the text with `old` replaced, everywhere or `count` times."""
        text = self.text(text)
        self._meter.reserve(len(text) + text.count(old) * max(0, len(new) - len(old)))
        return text.replace(old, new, -1 if count is None else count)

    def join(self, items: Iterable[Any], d: str = "") -> str:
        """Return the texts of the items with `d`, Jinja's name for the separator, between them."""
        texts = []
        for item in items:
            self._meter.step()
            texts.append(self.text(item))
        self._meter.reserve(sum(map(len, texts)) + len(d) * len(texts))
        return d.join(texts)

    def to_json(
        self,
        value: object,
        indent: int | None = None,
        ensure_ascii: bool = False,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        """Return plain JSON; Jinja's own escapes ``<>&'`` for HTML, which models never saw."""
        if indent is not None and not 0 <= indent <= MAX_INDENT:
            raise SecurityError(f"tojson: indent is {indent}; allowed is 0 to {MAX_INDENT}")
        encoder = json.JSONEncoder(ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
        pieces = []
        for piece in encoder.iterencode(value):
            self._meter.step()
            self._meter.reserve(len(piece))
            pieces.append(piece)
        return "".join(pieces)

    def check_operator(self, operator: str, left: Any, right: Any) -> None:
        """Refuse ``+ * ** %`` where the result would be too large, and printf-style text altogether."""
        # Texts, the usual, are told from their type alone; `Sized` asks for methods.
        sizes = [len(side) for side in (left, right) if isinstance(side, (str, Sized))]
        if operator == "%" and isinstance(left, str):
            raise SecurityError("a template may not use % on text")
        if operator == "+" and sizes:
            self._meter.reserve(sum(sizes))
        elif operator == "*" and sizes:
            self._meter.reserve(sizes[0] * max(0, right if isinstance(left, Sized) else left))
        elif isinstance(left, int) and isinstance(right, int):
            n_bits = {
                "*": left.bit_length() + right.bit_length(),
                "**": left.bit_length() * right,
            }.get(operator, 0)
            if n_bits > MAX_INTEGER_BITS:
                raise SecurityError(f"{operator} would make an integer of over {MAX_INTEGER_BITS} bits")
