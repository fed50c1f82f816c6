"""DeepSeek-R1 drops earlier reasoning from its prompts: what two turns have in common is worked out here by hand."""

import numpy as np
import pytest

from clutch.text.chat import ChatTemplate, encode_chat
from clutch.text.detokenizer import decode_all
from tests.support.model_reference import ReferenceModel
from tests.support.r1_model import MAX_TOKENS, NEXT_QUESTION, QUESTION, THINK_END, encode_r1_model, think_end_id
from tests.support.vocabularies import metadata_of, tokenizer_of

BOS, USER, ASSISTANT, END = 151646, 151644, 151645, 151643


@pytest.fixture(scope="module")
def r1():
    return tokenizer_of("dsr1qwen")


def prompt(r1, *contents):
    """Return the ids of a chat: questions and answers by turns."""
    roles = ("user", "assistant")
    messages = [{"role": roles[i % 2], "content": content} for i, content in enumerate(contents)]
    return encode_chat(r1, ChatTemplate.from_metadata(metadata_of("dsr1qwen"), r1.vocabulary), messages)


def n_common(one, other):
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def test_the_prompts_differ_where_the_reasoning_was(r1):
    answer = "<think>Spiders are arachnids.</think>Eight legs."
    first, second = prompt(r1, QUESTION), prompt(r1, QUESTION, answer, NEXT_QUESTION)
    question, next_question = r1.encode(QUESTION), r1.encode(NEXT_QUESTION)
    written = [*r1.encode(answer), END]

    # By hand: bos, the marker, the question, the marker; then the reasoning, or what is left without it.
    assert first == [BOS, USER, *question, ASSISTANT]
    assert second == [BOS, USER, *question, ASSISTANT, *r1.encode("Eight legs."), END, USER, *next_question, ASSISTANT]
    assert n_common([*first, *written], second) == len(first) == 3 + len(question)


def test_an_answer_without_reasoning_is_common_to_its_end(r1):
    answer = "Eight legs."
    first, second = prompt(r1, QUESTION), prompt(r1, QUESTION, answer, NEXT_QUESTION)
    written = [*r1.encode(answer), END]
    assert n_common([*first, *written], second) == len(first) + len(written)
    assert second[len(first) + len(written) :] == [USER, *r1.encode(NEXT_QUESTION), ASSISTANT]


def test_only_what_follows_the_last_reasoning_is_kept(r1):
    answer = "<think>One</think>two<think>three</think>four"
    second = prompt(r1, QUESTION, answer, NEXT_QUESTION)
    head = [BOS, USER, *r1.encode(QUESTION), ASSISTANT]
    assert second == [*head, *r1.encode("four"), END, USER, *r1.encode(NEXT_QUESTION), ASSISTANT]


def test_reasoning_that_begins_like_the_answer_shares_its_beginning(r1):
    answer = "Eight because</think>Eight legs."
    first, second = prompt(r1, QUESTION), prompt(r1, QUESTION, answer, NEXT_QUESTION)
    assert r1.encode("Eight because")[0] == r1.encode("Eight legs.")[0]
    assert n_common([*first, *r1.encode(answer)], second) == len(first) + 1


def test_the_model_with_random_weights_reasons(r1, tmp_path):
    path = tmp_path / "r1.gguf"
    path.write_bytes(encode_r1_model().data)
    first = prompt(r1, QUESTION)
    output_ids, margins = ReferenceModel(path).greedy(first, MAX_TOKENS)
    # A device that rounds otherwise writes the same answer.
    assert np.min(margins) > 0.1
    text = decode_all(r1.vocabulary, output_ids)
    reasoning, answer = text.split(THINK_END)
    at = output_ids.index(think_end_id())
    assert 0 < at < MAX_TOKENS - 1
    # Its text has the same tokens again, so that where the prompts part is a matter of the template alone.
    assert (r1.encode(reasoning), r1.encode(answer)) == (output_ids[:at], output_ids[at + 1 :])

    second = prompt(r1, QUESTION, text, NEXT_QUESTION)
    assert second[len(first) : len(first) + len(output_ids) - at - 1] == output_ids[at + 1 :]
    assert output_ids[0] != output_ids[at + 1]
    assert n_common([*first, *output_ids], second) == len(first)
