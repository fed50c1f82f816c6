"""The step uniform: where a step stands and how it samples; the one place a kernel learns positions from.

Word 0 is the position of the step's first token, word 1 how many tokens it has; both change every step. The
words behind them are settings that hold for a request. `wgsl/*.wgsl` declare the same fields as `struct Step`.
"""

import struct

from clutch.sampling.params import SamplingParams

FIELDS: tuple[tuple[str, str], ...] = (
    ("position", "u32"),
    ("n_tokens", "u32"),
    ("table_offset", "u32"),
    ("top_k", "u32"),
    ("seed_low", "u32"),
    ("seed_high", "u32"),
    ("temperature", "f32"),
    ("top_p", "f32"),
    ("min_p", "f32"),
)

# WebGPU's minUniformBufferOffsetAlignment: slots of a ring selected by dynamic offset.
SLOT_BYTES = 256


def settings(params: SamplingParams, table_offset: int) -> bytes:
    """Return the words behind position and n_tokens.

    Args:
        params: how to sample.
        table_offset: where the session's block table begins, in entries.
    """
    return struct.pack(
        "<IIIIfff",
        table_offset,
        params.top_k,
        params.seed & 0xFFFFFFFF,
        params.seed >> 32,
        params.temperature,
        params.top_p,
        params.min_p,
    )
