"""How a matrix is multiplied: which WGSL files make the sums of `wgsl/{qkv,matmul_add,gate_up,lm_head}.wgsl`.

An operation says what becomes of a sum; a product says which threads make it. So each operation exists once, and runs
as a product of rows for a token or a few, and as a product of tiles for a prompt.
"""

from dataclasses import dataclass
from typing import Protocol

PLAIN, NORMED = "source_plain", "source_normed"
"""How the activations come: as they are, or through RMSNorm."""

_WITHOUT_BYTES = {"f32"}
"""Weight formats that have no integer arithmetic."""

ANY_QUANTISED = "any"
"""A weight format that has."""


class Product(Protocol):
    """One way to multiply."""

    @property
    def is_int8(self) -> bool:
        """Whether activations are bytes."""

    @property
    def tokens(self) -> int:
        """Items of a workgroup along y."""

    def files(self, format: str, source: str) -> tuple[str, ...]:
        """Return what completes an operation on weights of `format` and activations from `source`."""

    @property
    def constants(self) -> dict[str, int]:
        """What these files ask for, but not what the source asks for."""

    def threads(self, rows: int) -> int:
        """Return the invocations along x for so many rows of weights."""

    def takes_bytes(self, format: str) -> bool:
        """Return whether `wgsl/quantise.wgsl` must have made bytes of the activations, for weights of `format`."""


@dataclass(frozen=True)
class Rows:
    """Lanes share pairs of rows (GEMV; `wgsl/product_rows.wgsl`), or a thread has a pair (`wgsl/product_thread.wgsl`).

    Args:
        lanes: that share a pair of rows, a power of two; 1: a thread works alone, without subgroups and barriers.
        pairs: that a group of lanes takes at once; 1 for a thread alone.
        workgroup: invocations.
        meeting: where lanes add up: "subgroup" or "workgroup".
        is_int8: activations as bytes; needs subgroups.
        tokens: that a lane takes through a weight it has read.
    """

    lanes: int = 1
    pairs: int = 1
    workgroup: int = 64
    meeting: str = "subgroup"
    is_int8: bool = False
    tokens: int = 1

    def files(self, format: str, source: str) -> tuple[str, ...]:
        """As `Product` says; activations are staged where many rows share the work of making them."""
        if self.lanes == 1:
            assert source == PLAIN, source
            return (f"format_{format}", "product_thread", source, "activations_direct")
        if self.is_int8 and format not in _WITHOUT_BYTES:
            activations = "int8"
        else:
            activations = "direct" if source == PLAIN else "staged"
        parts = ("product_rows", source, f"activations_{activations}", f"lanes_{self.meeting}")
        return (f"format_{format}", *parts)

    @property
    def constants(self) -> dict[str, int]:
        """As `Product` says."""
        of_lanes = {"LANES": self.lanes, "PAIRS": self.pairs} if self.lanes > 1 else {}
        return {**of_lanes, "TOKENS": self.tokens, "WORKGROUP": self.workgroup}

    def threads(self, rows: int) -> int:
        """As `Product` says."""
        groups = -(-((rows + 1) // 2) // self.pairs)
        return groups * self.lanes

    def workgroups(self, rows: int) -> int:
        """Return the workgroups along x for so many rows."""
        return -(-self.threads(rows) // self.workgroup)

    def takes_bytes(self, format: str) -> bool:
        """As `Product` says: a workgroup makes its bytes itself."""
        return False


@dataclass(frozen=True)
class Tiles:
    """A workgroup makes a tile of rows by items, in registers (GEMM; `wgsl/product_tiles.wgsl`).

    Args:
        rows: of a tile, a multiple of 8 thread_rows.
        tokens: of a tile, a multiple of 16.
        thread_rows: of a thread, 4 or 8; it has four tokens.
        splits: sets of threads that share the columns of a tile, where there are few tiles.
        is_int8: activations as bytes.
    """

    rows: int = 64
    tokens: int = 64
    thread_rows: int = 8
    splits: int = 1
    is_int8: bool = False

    def files(self, format: str, source: str) -> tuple[str, ...]:
        """As `Product` says."""
        assert source == PLAIN, source
        return (f"format_{format}", "product_tiles_int8" if self.takes_bytes(format) else "product_tiles")

    def takes_bytes(self, format: str) -> bool:
        """As `Product` says."""
        return self.is_int8 and format not in _WITHOUT_BYTES

    @property
    def constants(self) -> dict[str, int]:
        """As `Product` says."""
        return {
            "TILE_ROWS": self.rows,
            "TILE_TOKENS": self.tokens,
            "THREAD_ROWS": self.thread_rows,
            "SPLITS": self.splits,
            "WORKGROUP": self._workgroup,
        }

    def threads(self, rows: int) -> int:
        """As `Product` says."""
        return -(-rows // self.rows) * self._workgroup

    @property
    def _workgroup(self) -> int:
        return self.splits * self.rows * self.tokens // self.thread_rows // 4
