"""The step uniform: which sequences go through a step, where they stand, and how they sample.

It is the one place a kernel learns positions from. Token t of a step belongs to sequence `t / tokens_per_sequence` and
stands `t % tokens_per_sequence` behind that sequence's position: a prefill step has one sequence with many tokens, a
decode step has many sequences with one token each. `wgsl/step.wgsl` declares the same words.
"""

import struct

from clutch.protocol import MAX_SESSIONS
from clutch.sampling.params import SamplingParams

HEADER_FIELDS: tuple[tuple[str, str], ...] = (("n_tokens", "u32"), ("tokens_per_sequence", "u32"))
SEQUENCE_FIELDS: tuple[tuple[str, str], ...] = (
    ("position", "u32"),
    ("table_offset", "u32"),
    ("token_offset", "u32"),
    ("top_k", "u32"),
    ("seed_low", "u32"),
    ("seed_high", "u32"),
    ("temperature", "f32"),
    ("top_p", "f32"),
    ("min_p", "f32"),
)

# WGSL, section 13.4.1: elements of an array in a uniform begin at multiples of 16 bytes.
HEADER_BYTES = 16
SEQUENCE_BYTES = 48
MAX_SEQUENCES = MAX_SESSIONS

# A multiple of WebGPU's minUniformBufferOffsetAlignment: slots of a ring selected by dynamic offset.
SLOT_BYTES = 1024

CANDIDATE_BYTES = 16
"""Of a run of logits (`wgsl/candidate.wgsl`)."""

QUANTISED_BLOCK_BYTES = 48
"""Of 32 activations as bytes (`wgsl/quantise.wgsl`)."""

RESULT_BYTES = 16
"""Of one sequence: token, log-probability, entropy, position."""


def settings(params: SamplingParams, table_offset: int, token_offset: int) -> bytes:
    """Return the words of a sequence behind its position.

    Args:
        params: how to sample.
        table_offset, token_offset: where its block table and its tokens begin, in entries.
    """
    return struct.pack(
        "<IIIIIfff",
        table_offset,
        token_offset,
        params.top_k,
        params.seed & 0xFFFFFFFF,
        params.seed >> 32,
        params.temperature,
        params.top_p,
        params.min_p,
    )
