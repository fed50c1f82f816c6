"""A turn that is continued: for how many tokens, and when not."""

import pytest

from clutch.engine.overflow import Chat, Overflow
from clutch.engine.turn import Turn
from clutch.errors import ContextLengthError, RequestError
from clutch.sampling.params import SamplingParams

CONTEXT = 64


def turn_of(n_prompt, n_output, reason, *, max_tokens=10):
    turn = Turn(list(range(n_prompt)), SamplingParams(max_tokens=max_tokens), top_logits=5, reuse=False)
    turn.output_ids = list(range(n_output))
    turn.reason = reason
    return turn


def test_a_new_turn_has_the_limit_of_its_request():
    turn = turn_of(3, 0, "")
    assert (turn.max_tokens, turn.output_ids) == (10, [])


@pytest.mark.parametrize(
    ("n_output", "reason", "asked", "expected"),
    [
        (4, "abort", 10, 10),  # What is missing of the ten.
        (0, "abort", 10, 10),
        (4, "abort", 3, 10),  # Fewer are no reason to end earlier than was asked first.
        (4, "abort", 20, 20),
        (10, "length", 10, 20),  # As many again.
        (10, "length", 3, 13),
        (10, "length", 25, 25),
    ],
)
def test_how_far_a_continued_answer_goes(n_output, reason, asked, expected):
    turn = turn_of(3, n_output, reason)
    turn.reopen(SamplingParams(max_tokens=asked), CONTEXT)
    assert (turn.max_tokens, turn.reason, turn.top_logits, turn.reuse) == (expected, "", 0, True)
    assert len(turn.output_ids) == n_output
    assert turn.params.max_tokens == asked


def test_what_the_model_ended_is_not_continued():
    turn = turn_of(3, 4, "stop")
    with pytest.raises(RequestError) as refused:
        turn.reopen(SamplingParams(), CONTEXT)
    assert refused.value.code == "E600"
    assert (turn.reason, turn.max_tokens, turn.top_logits) == ("stop", 10, 5)


@pytest.mark.parametrize(("n_output", "fits"), [(CONTEXT - 4, True), (CONTEXT - 3, False)])
def test_there_must_be_room_for_another_token(n_output, fits):
    turn = turn_of(3, n_output, "context_full")
    if fits:
        turn.reopen(SamplingParams(), CONTEXT)
        assert turn.reason == ""
        return
    with pytest.raises(ContextLengthError) as refused:
        turn.reopen(SamplingParams(), CONTEXT)
    assert refused.value.data == {"prompt_tokens": CONTEXT, "context_length": CONTEXT}
    assert turn.reason == "context_full"


def encode(messages):
    """Three tokens a message."""
    return [0] * (3 * len(messages))


def chat_of(roles):
    return Chat([{"role": role, "content": role} for role in roles.split()], encode)


def test_a_copy_goes_its_own_way():
    turn = turn_of(3, 2, "abort")
    copy = turn.copy()
    copy.output_ids.append(9)
    copy.reopen(SamplingParams(), CONTEXT)
    assert (turn.output_ids, turn.reason) == ([0, 1], "abort")


def test_a_chat_that_may_drop_turns_is_continued_although_the_context_is_full():
    turn = turn_of(3, CONTEXT - 3, "context_full", max_tokens=100)
    turn.overflow = Overflow.DROP_OLDEST
    turn.reopen(SamplingParams(), CONTEXT)
    assert turn.reason == ""


def test_room_is_made_of_the_oldest_turns():
    turn = turn_of(21, CONTEXT - 21, "context_full", max_tokens=CONTEXT - 21 + 9)
    turn.chat = chat_of("system user assistant user assistant user user")
    assert not turn.make_room(CONTEXT)
    turn.overflow = Overflow.DROP_OLDEST
    # 9 tokens are still wanted: three messages less.
    assert turn.make_room(CONTEXT)
    assert [message["role"] for message in turn.chat.messages] == ["system", "user", "user"]
    assert (len(turn.prompt_ids), turn.chat.n_dropped) == (9, 4)


def test_without_a_turn_to_drop_there_is_no_room():
    turn = turn_of(6, CONTEXT - 6, "context_full")
    turn.overflow = Overflow.DROP_OLDEST
    turn.chat = chat_of("system user")
    assert not turn.make_room(CONTEXT)
    turn.chat = None
    assert not turn.make_room(CONTEXT)
