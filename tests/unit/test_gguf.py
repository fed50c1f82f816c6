"""Valid GGUF files: what is written is what is read, whole or piece by piece."""

import asyncio
import tracemalloc
from array import array

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clutch.errors import SourceError
from clutch.formats.gguf import NeedMoreBytes, parse_header, read_header
from clutch.formats.quants import QuantType
from tests.support.gguf_writer import FORMATS, Typed, ValueType, encode_gguf, tensor
from tests.support.tiny_model import encode_tiny_model, vocabulary

TINY = encode_tiny_model()

SCALARS = {
    ValueType.BOOL: st.booleans(),
    ValueType.F32: st.floats(width=32, allow_nan=False),
    ValueType.F64: st.floats(allow_nan=False),
    ValueType.STRING: st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    **{t: st.integers(0, 2 ** (8 * size) - 1) for t, size in zip([0, 2, 4, 10], [1, 2, 4, 8], strict=True)},
    **{
        t: st.integers(-(2 ** (8 * size - 1)), 2 ** (8 * size - 1) - 1) for t, size in [(1, 1), (3, 2), (5, 4), (11, 8)]
    },
}
TYPED_VALUES = st.sampled_from(sorted(SCALARS)).flatmap(
    lambda kind: st.builds(Typed, st.just(ValueType(kind)), SCALARS[kind] | st.lists(SCALARS[kind], max_size=5))
)
NAMES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=20)
SHAPES = st.lists(st.integers(1, 3), min_size=1, max_size=4)
FILES = st.tuples(
    st.dictionaries(NAMES.filter(lambda key: key != "general.alignment"), TYPED_VALUES, max_size=6),
    st.dictionaries(NAMES, st.tuples(SHAPES, st.sampled_from([QuantType.F32, QuantType.Q8_0])), max_size=4),
    st.sampled_from([8, 32, 256]),
    st.sampled_from([2, 3]),
)


def read_in_pieces(data, first_bytes=4096):
    async def read(offset, length):
        return data[offset : offset + length]

    return asyncio.run(read_header(read, len(data), first_bytes=first_bytes))


@given(FILES)
@settings(max_examples=150, deadline=None)
def test_round_trip(file):
    metadata, tensors, alignment, version = file
    metadata = {**metadata, "general.alignment": alignment}
    arrays = {
        name: np.ones((*shape[::-1][:-1], shape[0] * quant.block_size), np.float32)
        for name, (shape, quant) in tensors.items()
    }
    written = [tensor(name, values, tensors[name][1]) for name, values in arrays.items()]
    data = encode_gguf(metadata, written, alignment=alignment, version=version).data
    header = parse_header(data, len(data))

    assert (header.version, header.alignment, header.trailing_bytes) == (version, alignment, 0)
    assert list(header.metadata) == list(metadata)
    for key, typed in metadata.items():
        value = typed.value if isinstance(typed, Typed) else typed
        if isinstance(value, list) and typed.type is not ValueType.STRING:
            value = array(FORMATS[typed.type].replace("?", "B"), value)
        assert header.metadata[key] == value
        assert type(header.metadata[key]) is type(value)
    assert list(header.tensors) == [item.name for item in written]
    for item, info in zip(written, header.tensors.values(), strict=True):
        assert (info.name, info.shape, info.type.value) == (item.name, item.shape, item.type_id)
        assert data[info.offset : info.offset + info.size_bytes] == item.data
        assert info.offset % alignment == 0
    assert read_in_pieces(data, first_bytes=1) == header
    assert parse_header(memoryview(data), len(data)) == header


def test_tiny_model_header():
    header = parse_header(TINY.data, len(TINY.data))
    assert header.metadata["tokenizer.ggml.tokens"] == vocabulary()
    assert header.metadata["tokenizer.ggml.token_type"] == array("i", [3] * 17 + [1] * 296)
    assert header.metadata["tokenizer.ggml.add_bos_token"] is False
    assert len(header.tensors) == 2 + 2 * 9
    embedding = header.tensors["token_embd.weight"]
    assert embedding.shape == (64, 313)
    assert embedding.offset == header.data_offset
    assert embedding.size_bytes == 313 * 68


def test_pieces_give_the_same_as_the_whole_and_double():
    lengths = []

    async def read(offset, length):
        lengths.append(length)
        return TINY.data[offset : offset + length]

    header = asyncio.run(read_header(read, len(TINY.data), first_bytes=100))
    assert header == parse_header(TINY.data, len(TINY.data))
    assert sum(lengths) < 2 * TINY.header_bytes
    assert len(lengths) <= 8


def test_a_prefix_asks_for_more_than_it_has_but_not_more_than_the_header():
    for length in range(0, TINY.header_bytes, 7):
        with pytest.raises(NeedMoreBytes) as need:
            parse_header(TINY.data[:length], len(TINY.data))
        assert length < need.value.at_least <= TINY.header_bytes
    parse_header(TINY.data[: TINY.header_bytes], len(TINY.data))


def test_bytes_after_the_last_tensor_are_counted():
    data = TINY.data + bytes(77)
    assert parse_header(data, len(data)).trailing_bytes == 77


@pytest.mark.parametrize("extra", [-1, 1])
def test_a_source_that_gives_another_number_of_bytes_is_refused(extra):
    async def read(offset, length):
        return bytes(length + extra)

    with pytest.raises(SourceError, match="asked the source for 1000 bytes at 0"):
        asyncio.run(read_header(read, 1000))


def test_a_large_vocabulary_costs_the_heap_little():
    tokens = [f"token{i}" for i in range(100_000)]
    data = encode_gguf({"tokenizer.ggml.tokens": tokens}, []).data
    tracemalloc.start()
    header = parse_header(data, len(data))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert header.metadata["tokenizer.ggml.tokens"] == tokens
    assert peak < 10 << 20
