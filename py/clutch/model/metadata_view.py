"""Take typed, bounded values out of a GGUF header's metadata.

The GGUF reader promises only that a value is well formed; here a key gets the type and range it must have.
"""

import math
from collections.abc import Mapping, Sequence

from clutch.errors import ModelFormatError, UnsupportedModelError


def value_error(key: str, expected: str, found: object) -> ModelFormatError:
    """Return (not raise) the error for one wrong metadata value or tensor."""
    return ModelFormatError(
        f"the model file's {key}: expected {expected}, found {found}",
        hint="The file contradicts itself; get it from another place.",
        field=key,
        expected=expected,
        found=found,
    )


def unsupported(what: str, found: object, supported: str) -> UnsupportedModelError:
    """Return (not raise) the error for a sound file that asks for what we do not have."""
    return UnsupportedModelError(
        f"the model's {what} is {found}; Clutch runs {supported}",
        hint="Choose another model, or the same one in another quantisation.",
        field=what,
        found=found,
        supported=supported,
    )


class MetadataView:
    """Typed access to a header's metadata.

    A getter with a default returns it when the key is absent; one without makes the key required.
    """

    def __init__(self, metadata: Mapping[str, object]) -> None:
        self._metadata = metadata

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """Return a whole number in `low..high`.

        Raises:
            ModelFormatError: it is absent, of another type or out of range.
            UnsupportedModelError: it is an array, as in models whose layers differ.
        """
        value = self._get(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        if isinstance(value, Sequence) and not isinstance(value, str):
            raise unsupported(key, f"a list of {len(value)}", "one number for all layers")
        raise value_error(key, f"a whole number from {low} to {high}", _shown(value))

    def optional_integer(self, key: str, low: int, high: int) -> int | None:
        """Return a whole number in `low..high`, or None when the key is absent."""
        return self.integer(key, low, high) if key in self._metadata else None

    def real(self, key: str, low: float, high: float, default: float | None = None) -> float:
        """Return a number strictly between `low` and `high`, so never NaN nor infinite.

        Raises:
            ModelFormatError: it is absent, of another type or out of range.
        """
        value = self._get(key, default)
        if isinstance(value, float) and low < value < high and math.isfinite(value):
            return value
        raise value_error(key, f"a number between {low:g} and {high:g}", _shown(value))

    def text(self, key: str, default: str | None = None) -> str:
        """Return a string.

        Raises:
            ModelFormatError: it is absent or of another type.
        """
        value = self._get(key, default)
        if isinstance(value, str):
            return value
        raise value_error(key, "a string", _shown(value))

    def _get(self, key: str, default: object) -> object:
        return self._metadata.get(key, default)


def _shown(value: object) -> object:
    """Return a form of a value of any size that an error can carry."""
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return repr(value[:64])
    if isinstance(value, int):
        return value
    # A NaN is no JSON number, and errors cross the wire as JSON.
    return str(value) if isinstance(value, float) else f"a value of type {type(value).__name__}"
