"""Which GPU this is, and what fits on it. `worker/probe.js` has already refused one that cannot run the kernels."""

from dataclasses import dataclass


@dataclass(frozen=True)
class AdapterInfo:
    """Which GPU this is, as far as the browser says; strings may be empty."""

    vendor: str
    architecture: str
    description: str
    is_fallback: bool


@dataclass(frozen=True)
class Limits:
    """The limits that the memory plan checks, in bytes."""

    max_buffer_bytes: int
    max_binding_bytes: int

    @property
    def largest_buffer_bytes(self) -> int:
        """The largest buffer that one binding can show to a kernel."""
        return min(self.max_buffer_bytes, self.max_binding_bytes)
