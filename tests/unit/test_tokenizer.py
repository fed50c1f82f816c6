"""Our splitting and the exported tokenizer.json together give the recorded ids."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clutch.text.tokenizer import Tokenizer, well_formed
from clutch.text.vocabulary import Vocabulary
from tests.support.vocabularies import GOLDEN, metadata_of, pack, tokenizer_of, unpack

RECORDED = json.loads((GOLDEN / "tokenizer_ids.json").read_text())


@pytest.mark.parametrize("name", ["smollm2", "qwen25", "dsr1qwen"])
def test_ids_equal_the_recorded_ones(name):
    tokenizer = tokenizer_of(name)
    strings, ids = RECORDED["strings"], RECORDED["ids"][name]
    assert len(strings) == len(ids) == 202
    wrong = [(text, want) for text, want in zip(strings, ids, strict=True) if tokenizer.encode(text) != want]
    assert wrong == []


def test_packed_vocabularies_unpack_to_what_was_packed():
    metadata = metadata_of("smollm2")
    assert len(metadata["tokenizer.ggml.tokens"]) == len(metadata["tokenizer.ggml.token_type"]) == 49152
    assert unpack(pack(metadata)) == metadata


def test_control_tokens_are_text_unless_asked_for():
    tokenizer = tokenizer_of("smollm2")
    text = "a<|im_end|>b"
    assert tokenizer.encode(text)[1:2] == [2]
    plain = tokenizer.encode(text, parse_special=False)
    assert not set(plain) & set(tokenizer.vocabulary.control.values())
    assert b"".join(map(tokenizer.vocabulary.token_bytes, plain)) == text.encode()


def test_user_defined_tokens_are_always_one_token():
    tokenizer = tokenizer_of("dsr1qwen")
    assert tokenizer.encode("<think>", parse_special=False) == [151648]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("x", [("x", None)]),
        ("<a>", [("<a>", 1)]),
        ("<a><a>>", [("<a>", 1), ("<a>>", 2)]),
        ("x<a>y<b>z", [("x", None), ("<a>", 1), ("y", None), ("<b>", 3), ("z", None)]),
        ("<a", [("<a", None)]),
        ("!", [("!", None)]),
    ],
)
def test_split_is_leftmost_then_longest(text, expected):
    tokenizer = tiny_tokenizer({"<a>": 1, "<a>>": 2, "!": 4}, {"<b>": 3})
    assert list(tokenizer.split(text)) == expected


def test_split_leaves_control_tokens_alone():
    tokenizer = tiny_tokenizer({"<a>": 1}, {"<b>": 3})
    assert list(tokenizer.split("<a><b>", parse_special=False)) == [("<a>", None), ("<b>", 3)]


def test_no_special_tokens_split_nothing():
    assert list(tiny_tokenizer({}, {}).split("<a>")) == [("<a>", None)]


@given(st.text(alphabet="<ab>!|", max_size=40))
def test_pieces_join_to_the_text(text):
    tokenizer = tiny_tokenizer({"<a>": 1, "<a>>": 2, "a|": 4}, {"<b>": 3})
    pieces = list(tokenizer.split(text))
    assert "".join(piece for piece, _ in pieces) == text
    assert all(piece for piece, _ in pieces)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\ud83d", "a\ufffd"),
        ("\ude00b", "\ufffdb"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        ("\ude00\ud83dc", "\ufffd\ufffdc"),
    ],
)
def test_lone_surrogates_become_replacement_characters(text, expected):
    assert well_formed(text) == expected
    tokenizer = tokenizer_of("smollm2")
    assert tokenizer.encode(text) == tokenizer.encode(expected)


def test_a_raw_prompt_starts_with_one_bos():
    tokenizer = tokenizer_of("dsr1qwen")
    assert tokenizer.vocabulary.adds_bos
    plain = tokenizer.encode("Hello")
    assert tokenizer.encode_prompt("Hello") == [151646, *plain]
    assert tokenizer.encode_prompt("<｜begin▁of▁sentence｜>Hello") == [151646, *plain]
    assert tokenizer.encode_prompt("") == [151646]


def test_a_raw_prompt_gets_no_bos_where_the_model_wants_none():
    tokenizer = tokenizer_of("smollm2")
    assert tokenizer.encode_prompt("Hello") == tokenizer.encode("Hello")


def tiny_tokenizer(control: dict[str, int], user_defined: dict[str, int]) -> Tokenizer:
    vocabulary = Vocabulary(
        tokens=(),
        types=b"",
        merges=(),
        pre="smollm",
        control=control,
        user_defined=user_defined,
        bos_id=None,
        eos_id=None,
        end_ids=frozenset(),
        adds_bos=False,
    )
    return Tokenizer(vocabulary, lambda text: [ord(character) for character in text])
