"""How keys and values lie in a page: one layer's buffer is pages of [keys | values], each 16 rows, a row a position."""

from dataclasses import dataclass

from clutch.errors import UnsupportedModelError
from clutch.kv.pool import PAGE_POSITIONS

F16, Q8 = "f16", "q8"

_READ_TOGETHER = 8
"""Values of a head that a kernel reads at once (`eight_at`)."""


@dataclass(frozen=True)
class KVLayout:
    """Sizes of one layer's keys and values.

    Args:
        format: "f16": halves; "q8": signed bytes and an f32 scale for each position and head.
        n_kv_heads, head_dim: of the model.

    Raises:
        UnsupportedModelError: the heads do not suit the format.
    """

    format: str
    n_kv_heads: int
    head_dim: int

    def __post_init__(self) -> None:
        if self.head_dim % _READ_TOGETHER:
            raise UnsupportedModelError(
                f"Heads must have a multiple of {_READ_TOGETHER} values; this model's have {self.head_dim}.",
                hint="Choose another model.",
                head_dim=self.head_dim,
            )

    @property
    def row_words(self) -> int:
        """32-bit words of a position's keys, or of its values."""
        return self.n_kv_heads * (self.head_dim // 4 + 1 if self.format == Q8 else self.head_dim // 2)

    @property
    def position_bytes(self) -> int:
        """Of a position's keys and values."""
        return 2 * 4 * self.row_words

    @property
    def page_bytes(self) -> int:
        """Of a page."""
        return PAGE_POSITIONS * self.position_bytes
