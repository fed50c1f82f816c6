"""Which GPU this is, and what fits on it. `worker/probe.js` has already refused one that cannot run the kernels."""

from dataclasses import dataclass


@dataclass(frozen=True)
class AdapterInfo:
    """Which GPU this is, as far as the browser says; strings may be empty.

    Args:
        is_fallback: whether it is a CPU that plays a GPU.
        subgroup_size: lanes that every subgroup has at least; 0 where kernels cannot use subgroups.
    """

    vendor: str
    architecture: str
    description: str
    is_fallback: bool
    subgroup_size: int = 0


@dataclass(frozen=True)
class Limits:
    """The limits that plans are checked against, in bytes.

    Args:
        max_workgroup_bytes: memory that the invocations of a workgroup share.
    """

    max_buffer_bytes: int
    max_binding_bytes: int
    max_workgroup_bytes: int = 16384

    @property
    def largest_buffer_bytes(self) -> int:
        """The largest buffer that one binding can show to a kernel."""
        return min(self.max_buffer_bytes, self.max_binding_bytes)
