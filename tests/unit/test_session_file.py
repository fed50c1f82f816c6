"""A saved session comes back as it was, or not at all, and never with another error than ours."""

import contextlib
import dataclasses
import hashlib
import json
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clutch.engine.overflow import Overflow
from clutch.errors import RequestError, SavedSessionError
from clutch.formats import session_file
from clutch.formats.session_file import OVERFLOWS, PAGE_POSITIONS, SavedSession, decode, encode
from clutch.kv import pool

MODEL, N_VOCAB, PAGE_BYTES = "ab" * 32, 300, 8
SAVED = SavedSession(
    model_identity=MODEL,
    kv_format="f16",
    prompt_ids=[1, 299, 0],
    output_ids=[7],
    params={"temperature": 0.5, "seed": 2**64 - 1},
    messages=[{"role": "user", "content": "Grüße 🙂"}],
    overflow="stop",
    reason="abort",
    max_tokens=512,
    kv_token_ids=[1, 299, 0],
    page={"title": "A chat", "half an emoji": "\ud83d"},
    kv_pages=[bytes(range(PAGE_BYTES))],
)
PREAMBLE = struct.Struct("<8sIIQ")


def read(data, **changes):
    how = {"model_identity": MODEL, "n_vocab": N_VOCAB, "kv_format": "f16", "page_bytes": PAGE_BYTES}
    return decode(data, **{**how, **changes})


def refusal(data, **changes):
    with pytest.raises(SavedSessionError) as refused:
        read(data, **changes)
    assert refused.value.hint
    json.dumps(refused.value.to_wire())
    return refused.value.data["cause"]


def sealed(header, pages=b"", *, header_bytes=None, pages_bytes=None, version=1):
    """Return a forged file: whatever is in it, its checksum is right."""
    sizes = (len(header) if header_bytes is None else header_bytes, len(pages) if pages_bytes is None else pages_bytes)
    content = PREAMBLE.pack(b"CLUTCHSE", version, *sizes) + header + pages
    return content + hashlib.sha256(content).digest()


def forged(**changes):
    """Return the file of SAVED with other fields in its header; None leaves one out."""
    fields = {**dataclasses.asdict(SAVED), "page_bytes": PAGE_BYTES, **changes}
    del fields["kv_pages"]
    return sealed(json.dumps(fields).encode(), SAVED.kv_pages[0])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(), json_values, max_size=4)
messages = st.fixed_dictionaries({"role": st.text(), "content": st.text()})
token_ids = st.lists(st.integers(0, N_VOCAB - 1), max_size=40)


@st.composite
def sessions(draw):
    kv_token_ids = draw(token_ids)
    n_pages = -(-len(kv_token_ids) // PAGE_POSITIONS)
    pages = st.lists(st.binary(min_size=PAGE_BYTES, max_size=PAGE_BYTES), min_size=n_pages, max_size=n_pages)
    return SavedSession(
        model_identity=MODEL,
        kv_format="f16",
        prompt_ids=draw(token_ids),
        output_ids=draw(token_ids),
        params=draw(objects),
        messages=draw(st.none() | st.lists(messages, max_size=3)),
        overflow=draw(st.sampled_from(OVERFLOWS)),
        reason=draw(st.sampled_from(["", "stop", "abort"])),
        max_tokens=draw(st.integers(0, 1 << 20)),
        kv_token_ids=kv_token_ids,
        page=draw(objects),
        kv_pages=draw(pages),
    )


@given(sessions())
def test_what_was_saved_comes_back(saved):
    assert read(encode(saved)) == saved


def test_half_an_emoji_comes_back():
    assert read(encode(SAVED)) == SAVED


def test_it_means_what_the_engine_means():
    assert pool.PAGE_POSITIONS == PAGE_POSITIONS
    assert tuple(Overflow) == OVERFLOWS


def test_every_flipped_bit_is_noticed():
    data = bytearray(encode(SAVED))
    causes = set()
    for i in range(len(data) * 8):
        data[i // 8] ^= 1 << i % 8
        causes.add(refusal(bytes(data)))
        data[i // 8] ^= 1 << i % 8
    assert causes == {"damaged", "truncated", "version", "not_a_session"}


def test_every_truncation_is_noticed():
    data = encode(SAVED)
    assert {refusal(data[:length]) for length in range(len(data))} == {"truncated"}


def test_what_was_appended_is_noticed():
    assert refusal(encode(SAVED) + b"\0") == "damaged"


def test_another_file_is_named():
    assert refusal(b"GGUF" + bytes(100)) == refusal(b"<") == "not_a_session"


def test_another_version_is_named():
    assert refusal(sealed(b"{}", version=2)) == "version"


def test_another_model_is_named():
    assert refusal(encode(SAVED), model_identity="cd" * 32) == "other_model"
    # Whoever it belongs to, its ids are those of another vocabulary.
    assert refusal(encode(SAVED), model_identity="cd" * 32, n_vocab=1) == "other_model"


@pytest.mark.parametrize("changes", [{"kv_format": "q8"}, {"page_bytes": 2 * PAGE_BYTES}], ids=str)
def test_a_cache_of_another_kind_is_left_out(changes):
    assert read(encode(SAVED), **changes) == dataclasses.replace(SAVED, kv_token_ids=[], kv_pages=[])


@pytest.mark.parametrize("name", ["prompt_ids", "output_ids", "kv_token_ids"])
@pytest.mark.parametrize(
    "ids", [[N_VOCAB], [-1], [True], [1.0], ["1"], [None], [[1]], [10**40], "1", 1, None], ids=repr
)
def test_ids_are_tokens_of_the_model(name, ids):
    assert refusal(forged(**{name: ids})) == "damaged"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model_identity", 7),
        ("kv_format", None),
        ("params", []),
        ("messages", {}),
        ("messages", ["hello"]),
        ("messages", [{"role": "user"}]),
        ("messages", [{"role": "user", "content": 7}]),
        ("overflow", "explode"),
        ("reason", "x" * 1000),
        ("reason", None),
        ("max_tokens", -1),
        ("max_tokens", True),
        ("max_tokens", 10**30),
        ("max_tokens", 1.5),
        ("page", None),
        ("page_bytes", -8),
        ("page_bytes", 10**30),
        ("page_bytes", PAGE_BYTES + 1),
        ("page_bytes", 0),
        ("kv_token_ids", []),
        ("kv_token_ids", [1] * 17),
        ("unknown", 1),
    ],
)
def test_a_wrong_field_is_refused(name, value):
    assert refusal(forged(**{name: value})) == "damaged"


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b"{}",
        b"NaN",
        b"\xff\xfe",
        b"[" * 200_000,
        b'{"page":' * 100_000,
        b'{"page":' * 100_000 + b"1" + b"}" * 100_000,
        b"9" * 10_000,
    ],
    ids=lambda header: repr(header[:12]),
)
def test_a_header_that_is_none_is_refused(header):
    assert refusal(sealed(header)) == "damaged"


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_no_number_that_is_none(constant):
    header = encode(SAVED)[PREAMBLE.size : -32 - PAGE_BYTES].replace(b"0.5", constant.encode())
    assert refusal(sealed(header, SAVED.kv_pages[0])) == "damaged"
    with pytest.raises(RequestError):
        encode(dataclasses.replace(SAVED, page={"n": float(constant)}))


@pytest.mark.parametrize("size", [0xFFFFFFFF, 1 << 31])
def test_lengths_are_not_believed(size):
    assert refusal(sealed(b"{}", header_bytes=size)) == "truncated"
    assert refusal(sealed(b"{}", pages_bytes=size << 32 | size)) == "truncated"


def test_a_header_has_a_limit(monkeypatch):
    monkeypatch.setattr(session_file, "_MOST_HEADER_BYTES", 100)
    assert refusal(sealed(b" " * 101)) == "damaged"
    with pytest.raises(RequestError):
        encode(SAVED)


def test_what_is_no_json_is_not_saved():
    page = {}
    page["page"] = page
    with pytest.raises(RequestError):
        encode(dataclasses.replace(SAVED, page=page))


@settings(max_examples=300)
@given(st.binary(max_size=200), st.integers(0, 400), st.integers(0, 400))
def test_nothing_else_ever_comes_out(noise, at, until):
    data = encode(SAVED)
    spoilt = data[:at] + noise + data[until:]
    if spoilt != data:
        refusal(spoilt)
    refusal(sealed(noise, noise))


@given(json_values)
def test_nothing_else_comes_out_of_any_header(value):
    refusal(sealed(json.dumps(value).encode()))
    for name in (field.name for field in dataclasses.fields(SAVED) if field.name != "kv_pages"):
        with contextlib.suppress(SavedSessionError):
            read(forged(**{name: value}))
