"""How large a GGUF header may be: one object, so that tests can tighten it.

GGUF and ggml allow 1 GiB strings and 2^30 elements; these numbers are a few times what the largest published
models need. The worst header that passes costs the heap about five times its bytes (text is wider in a
Python string than in UTF-8); a real one costs about as much as it is long.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds on one header. Numbers are inclusive; sizes are in bytes."""

    header_bytes: int = 64 << 20
    metadata_keys: int = 4096
    key_bytes: int = 256
    string_bytes: int = 1 << 20
    template_bytes: int = 64 << 10
    element_bytes: int = 1 << 10
    """One string of an array: a token, a merge, a language."""
    array_elements: int = 1 << 20
    string_elements: int = 1 << 20
    """Strings in all arrays together: each costs the heap 60 bytes however short it is in the file."""
    tensors: int = 16384
    name_bytes: int = 63
    dims: int = 4


DEFAULT = Limits()
