"""Streams the weights of a file to the GPU: front to back, piece by piece, repacked there to where they belong.

The bytes never enter the Python heap; a piece lies in a staging buffer until its repack kernel has read it, and
the queue keeps that order.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Protocol

from clutch.formats.quants import QuantType
from clutch.gpu.device import Buffer, ByteStream, Device, Dispatch, Usage
from clutch.gpu.kernels import Kernel, kernel
from clutch.gpu.ledger import Ledger
from clutch.gpu.weight_formats import format_of
from clutch.model.weights import BLOCK, MatrixPlan, Part, SlabPlan, WeightPlan

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
        return [_repack(slab.type) for slab in self._weights.slabs]

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
                await scope.settle()
                queued = 0
                for part, plan in uploads:
                    await stream.skip(part.tensor.offset - at)
                    at = part.tensor.offset
                    for slab, piece in _pieces(part, plan, self._staging_bytes - 16):
                        size_bytes = len(piece) * part.row_bytes
                        await self._device.upload(stream, staging, size_bytes)
                        self._device.write(rows, _rows(part, plan.slabs[slab], piece))
                        self._device.run([self._repack(staging, rows, part, plan, slab, len(piece))])
                        at += size_bytes
                        queued += size_bytes
                        if queued >= _QUEUE_BYTES:
                            await self._device.idle()
                            queued = 0
                    on_progress("reading_weights", at, source.size_bytes, "bytes")
                await self._device.idle()
        finally:
            stream.close()

    def _repack(self, staging: Buffer, rows: Buffer, part: Part, plan: MatrixPlan, slab: int, n_rows: int) -> Dispatch:
        made = self._weights.buffers[plan.name].slabs[slab]
        buffers = (staging, made.quants, made.scales, rows)
        return Dispatch(_repack(part.tensor.type), buffers, n_rows * _threads_of_row(part))


def _repack(quant: QuantType) -> Kernel:
    return kernel(f"repack_{format_of(quant).name}")


def _threads_of_row(part: Part) -> int:
    return part.columns // min(BLOCK, part.tensor.type.block_size)


def _pieces(part: Part, plan: MatrixPlan, most_bytes: int) -> Iterator[tuple[int, range]]:
    """Yield (number of the slab, rows of the tensor), each of at most `most_bytes`; a row always fits."""
    step = most_bytes // part.row_bytes
    for i, slab in enumerate(plan.slabs):
        inside = part.rows_in(slab)
        for first in range(inside.start, inside.stop, step):
            yield i, range(first, min(first + step, inside.stop))


def _rows(part: Part, slab: SlabPlan, piece: range) -> bytes:
    """Return the `rows` uniform of the repack kernels (wgsl/rows.wgsl)."""
    blocks_per_row = _threads_of_row(part)
    offset = (part.row_offset - slab.first_row) % (1 << 32)
    n_blocks = len(piece) * blocks_per_row
    return struct.pack("<6I8x", n_blocks, blocks_per_row, piece.start, part.row_stride, offset, part.half_head)
