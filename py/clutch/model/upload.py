"""Streams the weights of a file to the GPU: front to back, piece by piece, repacked there to where they belong.

The bytes never enter the Python heap; a piece lies in a staging buffer until its repack kernel has read it, and
the queue keeps that order.
"""

import struct
from collections.abc import Callable
from typing import Protocol

from clutch.gpu.device import Buffer, ByteStream, Device, Dispatch, Usage
from clutch.gpu.kernels import Kernel, kernel
from clutch.gpu.ledger import Ledger
from clutch.gpu.weight_formats import format_of
from clutch.model.weights import BLOCK, MatrixPlan, Part, WeightPlan

# Wait for the GPU at least this often, so that what is queued stays bounded.
_QUEUE_BYTES = 32 << 20

# (phase, done, total, unit), as in the `progress` message.
Progress = Callable[[str, int, int, str], None]


class Source(Protocol):
    """A model file, wherever it lies."""

    @property
    def size_bytes(self) -> int:
        """Its size."""

    async def read(self, offset: int, length: int) -> bytes:
        """Return bytes of it.

        Raises:
            SourceError: they cannot be read.
        """

    async def stream(self, offset: int) -> ByteStream:
        """Return its bytes from `offset` on, for the GPU."""


class Upload:
    """One pass over the weights of a file.

    Args:
        weights: which tensor goes where; its buffers are allocated.
        device: where to.
        staging_bytes: the staging buffer; 16 bytes of it stay unused, because a repack kernel may read the word
            behind its last block.
    """

    def __init__(self, weights: WeightPlan, device: Device, *, staging_bytes: int) -> None:
        self._weights = weights
        self._device = device
        self._staging_bytes = staging_bytes

    @property
    def kernels(self) -> list[Kernel]:
        """What must be compiled before `run`."""
        return [_repack(plan) for plan in self._weights.matrices.values()]

    async def run(self, source: Source, ledger: Ledger, on_progress: Progress) -> None:
        """Upload everything.

        Raises:
            SourceError: the file ends early or cannot be read.
        """
        uploads = self._weights.uploads()
        at = uploads[0][0].tensor.offset
        stream = await source.stream(at)
        try:
            with ledger.scope(self._device) as scope:
                staging = await scope.buffer("upload staging", self._staging_bytes)
                rows = await scope.buffer("repack rows", 256, Usage.UNIFORM)
                queued = 0
                for part, plan in uploads:
                    await stream.skip(part.tensor.offset - at)
                    at = part.tensor.offset
                    for first_row, n_rows, size_bytes in _pieces(part, plan, self._staging_bytes - 16):
                        await self._device.upload(stream, staging, size_bytes)
                        self._device.write(rows, _rows(part, plan, first_row, n_rows))
                        self._device.run([self._repack(staging, rows, plan, n_rows)])
                        at += size_bytes
                        queued += size_bytes
                        if queued >= _QUEUE_BYTES:
                            await self._device.idle()
                            queued = 0
                    on_progress("reading_weights", at, source.size_bytes, "bytes")
                await self._device.idle()
        finally:
            stream.close()

    def _repack(self, staging: Buffer, rows: Buffer, plan: MatrixPlan, n_rows: int) -> Dispatch:
        [matrix] = self._weights.buffers[plan.name].slabs
        buffers = (staging, matrix.quants, matrix.scales, rows)
        return Dispatch(_repack(plan), buffers, n_rows * plan.columns // _block(plan))


def _repack(plan: MatrixPlan) -> Kernel:
    return kernel(f"repack_{format_of(plan.type).name}")


def _block(plan: MatrixPlan) -> int:
    """Weights that a thread of the repack kernel moves."""
    return min(BLOCK, plan.type.block_size)


def _pieces(part: Part, plan: MatrixPlan, most_bytes: int) -> list[tuple[int, int, int]]:
    """Cut a tensor into (first row, rows, bytes) of at most `most_bytes`; a row always fits."""
    row_bytes = plan.row_bytes
    n_rows = part.tensor.size_bytes // row_bytes
    step = most_bytes // row_bytes
    return [
        (first, min(step, n_rows - first), min(step, n_rows - first) * row_bytes) for first in range(0, n_rows, step)
    ]


def _rows(part: Part, plan: MatrixPlan, first_row: int, n_rows: int) -> bytes:
    """Return the `rows` uniform of the repack kernels."""
    blocks_per_row = plan.columns // _block(plan)
    return struct.pack("<5I12x", n_rows * blocks_per_row, blocks_per_row, first_row, part.row_stride, part.row_offset)
