"""The ledger counts every GPU buffer; its scopes own them. After unload it must read zero."""

from types import TracebackType
from typing import Self

from clutch.errors import OutOfMemory
from clutch.gpu.device import Buffer, Device, Usage


class Ledger:
    """Counts the buffers and bytes that live scopes hold."""

    def __init__(self) -> None:
        self.buffers = 0
        self.bytes = 0

    def scope(self, device: Device) -> "Scope":
        """Return a scope that owns what it allocates on `device`."""
        return Scope(self, device)

    def to_wire(self) -> dict[str, object]:
        """Return the JSON-able counts."""
        return {"buffers": self.buffers, "bytes": self.bytes}


class Scope:
    """Owner of buffers: whatever is allocated here is destroyed when it closes, in reverse order."""

    def __init__(self, ledger: Ledger, device: Device) -> None:
        self._ledger = ledger
        self._device = device
        self._owned: list[Buffer] = []

    async def buffer(self, label: str, size_bytes: int, usage: Usage = Usage.STORAGE) -> Buffer:
        """Allocate a buffer of at least `size_bytes`, rounded up to 16; call `settle` before relying on it.

        Raises:
            OutOfMemory: it does not fit; what the scope already owns stays until it closes.
        """
        size_bytes = max(16, -(-size_bytes // 16) * 16)
        buffer = await self._device.allocate(label, size_bytes, usage)
        self._owned.append(buffer)
        self._ledger.buffers += 1
        self._ledger.bytes += size_bytes
        return buffer

    async def settle(self) -> None:
        """Wait until everything allocated is there.

        Raises:
            OutOfMemory: a buffer does not fit; it is given up, and what was allocated after it. What the scope owns
                besides stays until it closes.
        """
        try:
            await self._device.settle()
        except OutOfMemory as refused:
            while self._owned and self._destroy_last() != refused.data.get("buffer"):
                pass
            raise

    def close(self) -> None:
        """Destroy everything owned; closing twice is harmless."""
        while self._owned:
            self._destroy_last()

    def _destroy_last(self) -> str:
        buffer = self._owned.pop()
        self._ledger.buffers -= 1
        self._ledger.bytes -= buffer.size_bytes
        buffer.destroy()
        return buffer.label

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
