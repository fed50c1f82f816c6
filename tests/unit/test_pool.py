"""The pool of pages against a model of it: a dict from page to references."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clutch.errors import PoolExhausted
from clutch.kv.pool import Pool

N_PAGES = 6
# (what, number): acquire so many, or retain/release the page in use at this place.
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("acquire"), st.integers(0, N_PAGES + 2)),
        st.tuples(st.sampled_from(["retain", "release"]), st.integers(0, 99)),
    ),
    max_size=60,
)


@given(STEPS)
def test_every_page_has_the_owners_that_were_given(steps):
    pool, references = Pool(N_PAGES), {}
    for what, number in steps:
        free = N_PAGES - len(references)
        if what == "acquire" and number > free:
            with pytest.raises(PoolExhausted) as refused:
                pool.acquire(number)
            assert refused.value.data == {"asked_pages": number, "free_pages": free, "total_pages": N_PAGES}
            assert f"{number} more" in refused.value.message
            assert f"{free} of {N_PAGES}" in refused.value.message
        elif what == "acquire":
            pages = pool.acquire(number)
            assert len(set(pages)) == number
            assert set(pages).isdisjoint(references)
            assert set(pages) <= set(range(N_PAGES))
            references |= dict.fromkeys(pages, 1)
        elif references:
            page = sorted(references)[number % len(references)]
            getattr(pool, what)(page)
            references[page] += 1 if what == "retain" else -1
            if not references[page]:
                del references[page]
        assert pool.n_free == N_PAGES - len(references)


@pytest.mark.parametrize("what", ["retain", "release"])
def test_a_free_page_has_no_owner_to_add_or_drop(what):
    pool = Pool(2)
    (page,) = pool.acquire(1)
    pool.release(page)
    with pytest.raises(AssertionError):
        getattr(pool, what)(page)
    assert pool.n_free == 2


def test_a_shared_page_is_free_after_its_last_owner():
    pool = Pool(1)
    (page,) = pool.acquire(1)
    pool.retain(page)
    pool.release(page)
    assert pool.n_free == 0
    pool.release(page)
    assert pool.acquire(1) == [page]
