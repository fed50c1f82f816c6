"""GGUF headers cut at every byte, and with random numbers replaced by the values that break readers."""

import asyncio
import random
import tracemalloc

import pytest

from clutch.errors import ModelFormatError, UnsupportedModelError
from clutch.formats.gguf import GGUFHeader, parse_header, read_header
from clutch.model.spec_reader import read_spec
from tests.support.tiny_model import encode_tiny_model

TINY = encode_tiny_model()
SIZE = len(TINY.data)
N_MUTATIONS = 2000
NASTY = [0, 1, -1, 1 << 31, 1 << 32, 1 << 53, 1 << 63, SIZE - 1, SIZE, SIZE + 1, TINY.header_bytes]


def outcome(data: bytes) -> GGUFHeader | dict[str, object]:
    """Return the header, or the facts of the error that refused it."""
    try:
        return parse_header(data, len(data))
    except ModelFormatError as error:
        return error.data


def mutated(seed: int) -> bytes:
    """Return the tiny model with one to three numbers of its header replaced, mostly structural ones."""
    chosen = random.Random(seed)
    structure = [number for number in TINY.numbers if not number.label.startswith("value of ")]
    values = {
        chosen.choice(chosen.choice([structure, structure, TINY.numbers])).label: chosen.choice(NASTY)
        for _ in range(chosen.randint(1, 3))
    }
    return TINY.patched(values)


def test_a_file_cut_at_any_byte_of_its_header_is_refused():
    for length in range(TINY.header_bytes + 1):
        with pytest.raises(ModelFormatError):
            parse_header(TINY.data[:length], length)


def test_mutations_parse_or_are_refused():
    refused = 0
    for seed in range(N_MUTATIONS):
        data = mutated(seed)
        try:
            header = parse_header(data, len(data))
            assert all(tensor.offset + tensor.size_bytes <= SIZE for tensor in header.tensors.values())
            read_spec(header)
        except (ModelFormatError, UnsupportedModelError):
            refused += 1
    # Some replace a number by itself or a free value; most must be noticed.
    assert N_MUTATIONS * 0.8 < refused < N_MUTATIONS


def test_mutations_read_in_pieces_end_the_same():
    for seed in range(0, N_MUTATIONS, 8):
        data = mutated(seed)

        async def read(offset, length, data=data):
            return data[offset : offset + length]

        try:
            piecewise = asyncio.run(read_header(read, len(data), first_bytes=512))
        except ModelFormatError as error:
            piecewise = error.data
        whole = outcome(data)
        # A NaN is not equal to itself, so that headers are compared as text.
        assert repr(piecewise) == repr(whole)


def test_mutations_allocate_no_more_than_a_good_header():
    tracemalloc.start()
    for seed in range(0, N_MUTATIONS, 20):
        data = mutated(seed)
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        outcome(data)
        _, peak = tracemalloc.get_traced_memory()
        assert peak - before < 256 << 10
    tracemalloc.stop()
