"""A session: the committed tokens and their pages go together, whatever is done to it."""

from hypothesis import given
from hypothesis import strategies as st

from clutch.engine.session import Session
from clutch.kv.pool import PAGE_POSITIONS, Pool

# Few different tokens, so that prefixes do match.
TOKENS = st.lists(st.integers(0, 1), max_size=40)


def session_of(token_ids, n_pages=4):
    pool = Pool(n_pages)
    session = Session(pool)
    session.table.reserve(len(token_ids))
    session.commit(token_ids)
    return session, pool


@given(TOKENS, TOKENS.filter(bool))
def test_match_is_the_longest_common_prefix_but_never_the_whole_prompt(known, prompt):
    session, _ = session_of(known)
    length = session.match(prompt)
    assert 0 <= length < len(prompt)
    assert known[:length] == prompt[:length]
    if length < min(len(known), len(prompt) - 1):
        assert known[length] != prompt[length]


def test_a_prompt_that_is_known_whole_computes_its_last_token_again():
    session, _ = session_of([1, 2, 3])
    assert session.match([1, 2, 3]) == 2
    assert session.match([1, 2, 3, 4]) == 3
    assert session.match([1]) == 0
    assert session.match([1, 9, 3, 4]) == 1


@given(TOKENS, st.lists(st.tuples(st.booleans(), TOKENS, st.integers(0, 60)), max_size=8))
def test_tokens_and_pages_go_together(first, steps):
    session, pool = session_of(first)
    expected = list(first)
    for is_commit, token_ids, length in steps:
        if is_commit:
            taken = token_ids[: pool.n_pages * PAGE_POSITIONS - len(expected)]
            session.table.reserve(len(expected) + len(taken))
            session.commit(taken)
            expected += taken
        else:
            kept = min(length, len(expected))
            session.rewind(kept)
            del expected[kept:]
            assert pool.n_pages - pool.n_free == -(-kept // PAGE_POSITIONS)
        assert session.token_ids == expected
        assert session.table.length == len(expected)
    session.close()
    assert (session.token_ids, session.table.length, pool.n_free) == ([], 0, pool.n_pages)
