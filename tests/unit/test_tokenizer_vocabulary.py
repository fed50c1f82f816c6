"""The tokenizer keys of a model file: what is read, and what is refused."""

import json
from array import array

import pytest

from clutch.errors import ModelFormatError, UnsupportedModelError
from clutch.text.tokenizer_json import tokenizer_json
from clutch.text.vocabulary import BYTE_OF, Vocabulary
from tests.support.vocabularies import metadata_of

SMALL = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": ["<eos>", "a", "b", "ab", "Ġ", "<t>", "[PAD]", "<unk>", "日"],
    "tokenizer.ggml.token_type": [3, 1, 1, 1, 1, 4, 5, 2, 1],
    "tokenizer.ggml.merges": ["a b"],
    "tokenizer.ggml.eos_token_id": 0,
}


def changed(**keys):
    return SMALL | {f"tokenizer.ggml.{key}": value for key, value in keys.items()}


def test_the_byte_alphabet_is_gpt2s():
    assert len(BYTE_OF) == 256
    assert sorted(BYTE_OF.values()) == list(range(256))
    assert (BYTE_OF["Ġ"], BYTE_OF["Ċ"], BYTE_OF["!"], BYTE_OF["Ń"]) == (0x20, 0x0A, 0x21, 0xAD)


def test_token_bytes_by_type():
    vocabulary = Vocabulary.from_metadata(SMALL)
    expected = [b"<eos>", b"a", b"b", b"ab", b" ", b"<t>", b"", b"<unk>", "日".encode()]
    assert [vocabulary.token_bytes(token_id) for token_id in range(9)] == expected
    assert vocabulary.control == {"<eos>": 0}
    assert vocabulary.user_defined == {"<t>": 5}
    assert (vocabulary.bos_id, vocabulary.eos_id, vocabulary.adds_bos) == (None, 0, False)


def test_types_may_be_an_array():
    vocabulary = Vocabulary.from_metadata(changed(token_type=array("i", SMALL["tokenizer.ggml.token_type"])))
    assert vocabulary.types == bytes([3, 1, 1, 1, 1, 4, 5, 2, 1])


@pytest.mark.parametrize(
    ("name", "expected"), [("smollm2", {0, 2}), ("dsr1qwen", {151643, 151647}), ("qwen25", {151643, 151645})]
)
def test_end_ids_hold_eos_and_the_ends_of_turns(name, expected):
    assert Vocabulary.from_metadata(metadata_of(name)).end_ids == expected


def test_eot_ends_a_turn_and_a_normal_token_of_that_name_does_not():
    metadata = changed(tokens=["<|im_end|>", *"abcdefgh"], token_type=[1] * 9, eos_token_id=3, eot_token_id=4)
    assert Vocabulary.from_metadata(metadata).end_ids == {3, 4}


@pytest.mark.parametrize(("key", "value"), [("model", "llama"), ("pre", "llama-bpe")])
def test_other_tokenizers_are_unsupported(key, value):
    with pytest.raises(UnsupportedModelError, match=value):
        Vocabulary.from_metadata(changed(**{key: value}))


@pytest.mark.parametrize(
    "fault",
    [
        {"model": None},
        {"pre": 3},
        {"tokens": None},
        {"tokens": ["a", 1]},
        {"tokens": "abc"},
        {"merges": 7},
        {"token_type": None},
        {"token_type": "333333333"},
        {"token_type": [1, 1]},
        {"token_type": [1] * 8 + [6]},
        {"token_type": [1] * 8 + [-1]},
        {"token_type": [1] * 8 + ["1"]},
        {"eos_token_id": 9},
        {"eos_token_id": -1},
        {"bos_token_id": True},
        {"eot_token_id": "0"},
        {"add_bos_token": True},
        {"add_bos_token": 1, "bos_token_id": 0},
    ],
)
def test_contradictions_are_format_errors(fault):
    with pytest.raises(ModelFormatError):
        Vocabulary.from_metadata(changed(**fault))


def test_tokenizer_json_holds_normal_tokens_only():
    document = json.loads(tokenizer_json(Vocabulary.from_metadata(SMALL)))
    assert document["added_tokens"] == []
    assert document["model"]["vocab"] == {"a": 1, "b": 2, "ab": 3, "Ġ": 4, "日": 8}
    assert document["model"]["merges"] == ["a b"]


@pytest.mark.parametrize("merge", ["ab", "a c", "c b", "b a", "<e os>", ""])
def test_a_merge_must_join_two_tokens_to_a_third(merge):
    with pytest.raises(ModelFormatError, match="merge 0"):
        tokenizer_json(Vocabulary.from_metadata(changed(merges=[merge])))


def test_tokens_must_differ():
    with pytest.raises(ModelFormatError, match="tokens 1 and 2"):
        tokenizer_json(Vocabulary.from_metadata(changed(tokens=["<eos>", "a", "a", *"bcdefg"])))
