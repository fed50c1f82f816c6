"""Conversations become the recorded ids, and what is typed into them stays text."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clutch.errors import RequestError, TemplateError, UnsupportedModelError
from clutch.text.chat import CHATML, ChatTemplate, check_messages, encode_chat
from clutch.text.detokenizer import decode_all
from clutch.text.shield import Shield
from clutch.text.vocabulary import Vocabulary
from tests.support.vocabularies import GOLDEN, metadata_of, tokenizer_of

RECORDED = {prompt["name"]: prompt for prompt in json.loads((GOLDEN / "smollm2_greedy.json").read_text())["prompts"]}
CONVERSATIONS = [name for name, prompt in RECORDED.items() if prompt["messages"] is not None]
CHATML_TEMPLATE = ChatTemplate(CHATML, "", "<|im_end|>")


def user(content):
    return [{"role": "user", "content": content}]


def template_of(name):
    return ChatTemplate.from_metadata(metadata_of(name), tokenizer_of(name).vocabulary)


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_conversations_give_the_recorded_ids(name):
    recorded = RECORDED[name]
    template = template_of("smollm2")
    assert template.render(recorded["messages"]) == recorded["prompt"]
    assert encode_chat(tokenizer_of("smollm2"), template, recorded["messages"]) == recorded["prompt_ids"]


def test_all_recorded_prompts_are_used():
    assert len(CONVERSATIONS) == 7
    assert set(RECORDED) - set(CONVERSATIONS) == {"raw"}


def test_the_raw_prompt_gives_the_recorded_ids():
    assert tokenizer_of("smollm2").encode_prompt(RECORDED["raw"]["prompt"]) == RECORDED["raw"]["prompt_ids"]


def test_r1_writes_its_own_bos_once_and_hides_past_reasoning():
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "1+1?"},
        {"role": "assistant", "content": "<think>easy</think>2"},
        {"role": "user", "content": "And 2+2?"},
    ]
    token_ids = encode_chat(tokenizer_of("dsr1qwen"), template_of("dsr1qwen"), messages)
    assert token_ids[0] == 151646
    assert token_ids.count(151646) == 1
    assert token_ids == tokenizer_of("dsr1qwen").encode(
        "<｜begin▁of▁sentence｜>Be brief.<｜User｜>1+1?<｜Assistant｜>2<｜end▁of▁sentence｜>"
        "<｜User｜>And 2+2?<｜Assistant｜>"
    )


CONTROLS = [
    pytest.param(name, text, id=f"{name}-{token_id}")
    for name in ("smollm2", "dsr1qwen")
    for text, token_id in tokenizer_of(name).vocabulary.control.items()
]


@pytest.mark.parametrize(("name", "control"), CONTROLS)
def test_a_typed_control_token_is_plain_text(name, control):
    tokenizer, template = tokenizer_of(name), template_of(name)
    typed = f"a {control}{control[:4]}{control} {control[0]}{control}"
    frame = encode_chat(tokenizer, template, user("@"))
    token_ids = encode_chat(tokenizer, template, user(typed))
    controls = set(tokenizer.vocabulary.control.values())
    assert [i for i in token_ids if i in controls] == [i for i in frame if i in controls]
    shown = decode_all(tokenizer.vocabulary, token_ids)
    assert shown == decode_all(tokenizer.vocabulary, frame).replace("@", typed)


@pytest.mark.parametrize("cut", range(1, 10))
def test_two_messages_cannot_form_a_control_token_together(cut):
    tokenizer = tokenizer_of("smollm2")
    joining = ChatTemplate("{% for m in messages %}{{ m.content }}{% endfor %}", "", "")
    messages = [*user("<|im_end|>"[:cut]), *user("<|im_end|>"[cut:])]
    token_ids = encode_chat(tokenizer, joining, messages)
    assert not set(token_ids) & set(tokenizer.vocabulary.control.values())
    assert decode_all(tokenizer.vocabulary, token_ids) == "<|im_end|>"


def test_overlapping_control_tokens_are_all_covered():
    shield = Shield(["ab", "bc", "abcd", "x"])
    covered = shield.cover("abcd abc x")
    assert not re.search("ab|bc", covered)
    assert shield.uncover(covered) == "abcd abc x"


@given(st.text(alphabet="<|im_end>\u00e9 ", max_size=60))
def test_covering_hides_every_control_token_and_nothing_else(text):
    shield = Shield(["<|im_end|>", "<|im|>"])
    covered = shield.cover(text)
    assert "<|im_end|>" not in covered
    assert "<|im|>" not in covered
    assert shield.uncover(covered) == text


def test_lone_surrogates_in_messages_become_replacement_characters():
    tokenizer = tokenizer_of("smollm2")
    template = template_of("smollm2")
    assert encode_chat(tokenizer, template, user("<\ud800|im_end|>")) == encode_chat(
        tokenizer, template, user("<\ufffd|im_end|>")
    )


def test_without_a_template_chatml_is_used_where_its_tokens_exist():
    metadata = {key: value for key, value in metadata_of("qwen25").items() if key != "tokenizer.chat_template"}
    template = ChatTemplate.from_metadata(metadata, Vocabulary.from_metadata(metadata))
    assert template.render(user("Hi")) == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert template.render(user("Hi"), add_generation_prompt=False) == "<|im_start|>user\nHi<|im_end|>\n"


def test_without_a_template_and_without_chatml_there_is_no_chat():
    metadata = {key: value for key, value in metadata_of("dsr1qwen").items() if key != "tokenizer.chat_template"}
    with pytest.raises(UnsupportedModelError, match="no chat template"):
        ChatTemplate.from_metadata(metadata, Vocabulary.from_metadata(metadata))


@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool"])
def test_known_roles_are_accepted(role):
    check_messages([{"role": role, "content": ""}])


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        (None, "expected a list of 1 to 1000, found NoneType"),
        ([], "found 0 items"),
        (user("x") * 1001, "found 1001 items"),
        (["x"], "message 0: expected an object"),
        ([{"role": "user"}], "message 0: expected an object"),
        ([*user("x"), {"role": "user", "content": "x", "name": "y"}], "message 1: expected an object"),
        ([{"role": "root", "content": "x"}], "role is 'root'"),
        ([{"role": ["user"], "content": "x"}], "role is"),
        (user(None), "content is a NoneType"),
        (user(3), "content is a int"),
    ],
)
def test_malformed_messages_are_refused(messages, complaint):
    with pytest.raises(RequestError, match=complaint):
        encode_chat(tokenizer_of("smollm2"), CHATML_TEMPLATE, messages)


def test_the_templates_own_complaint_is_passed_on():
    template = ChatTemplate("{{ raise_exception('Roles must alternate') }}", "", "")
    with pytest.raises(TemplateError, match="Roles must alternate"):
        template.render(user("x"))
