"""What a GPU allows, and whether it is enough."""

from dataclasses import dataclass

from clutch.errors import CapabilityError

# What the kernels use, whatever the model; WebGPU's own guaranteed minimum except where a line says otherwise.
REQUIRED: dict[str, int] = {
    "maxComputeInvocationsPerWorkgroup": 256,
    "maxComputeWorkgroupSizeX": 256,
    "maxComputeWorkgroupStorageSize": 4096,
    "maxComputeWorkgroupsPerDimension": 65535,
    "maxStorageBuffersPerShaderStage": 8,
    "maxStorageBufferBindingSize": 128 << 20,
    "maxBufferSize": 128 << 20,
}


@dataclass(frozen=True)
class AdapterInfo:
    """Which GPU this is, as far as the browser says; strings may be empty."""

    vendor: str
    architecture: str
    description: str
    is_fallback: bool

    def to_wire(self) -> dict[str, object]:
        """Return the JSON-able form."""
        return {
            "vendor": self.vendor,
            "architecture": self.architecture,
            "description": self.description,
            "is_fallback": self.is_fallback,
        }


@dataclass(frozen=True)
class Limits:
    """The limits that the memory plan checks, in bytes."""

    max_buffer_bytes: int
    max_binding_bytes: int

    @property
    def largest_buffer_bytes(self) -> int:
        """The largest buffer that one binding can show to a kernel."""
        return min(self.max_buffer_bytes, self.max_binding_bytes)


def check_limits(offered: dict[str, int]) -> None:
    """Check an adapter's limits against `REQUIRED`.

    Raises:
        CapabilityError: the first limit that is too small, with both numbers.
    """
    for name, needed in REQUIRED.items():
        if offered.get(name, 0) < needed:
            raise CapabilityError(
                f"This GPU's {name} is {offered.get(name, 0)}; Clutch needs {needed}.",
                hint="Try another GPU or an up-to-date browser and driver.",
                limit=name,
                offered=offered.get(name, 0),
                needed=needed,
            )
