"""A step of three sequences: each has a position, a block table, tokens and a way of sampling of its own."""

import numpy as np

from tests.support.kernel_reference import Sequence, Step

N_PAGES = 12
TABLE_OFFSET = 4
"""Where the first table begins; what stands before it is no page."""

THREE = Step(
    (
        Sequence(37, TABLE_OFFSET + 8, token_offset=128, temperature=0.8, seed_low=1, top_k=5),
        Sequence(0, TABLE_OFFSET, token_offset=0),
        Sequence(
            14, TABLE_OFFSET + 4, token_offset=64, temperature=1.1, seed_low=1, seed_high=2, top_p=0.9, min_p=0.01
        ),
    ),
    tokens_per_sequence=2,
)
N_TOKENS = 192
"""Room for the tokens of all three."""


def block_tables(rng):
    """Return tables over all pages, in any order."""
    return np.concatenate([np.full(TABLE_OFFSET, 99), rng.permutation(N_PAGES)]).astype(np.uint32)
