"""The pool of pages against a model of it: references, what is indexed, and in which order the cached are given up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clutch.errors import PoolExhausted
from clutch.kv.pool import Pool

N_PAGES = 6
# (what, number): acquire so many; or retain, release or index the held (or cached) page at this place.
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("acquire"), st.integers(0, N_PAGES + 2)),
        st.tuples(st.sampled_from(["retain", "release", "release", "index", "revive"]), st.integers(0, 99)),
    ),
    max_size=80,
)


@given(STEPS)
def test_every_page_has_the_owners_that_were_given(steps):
    pool, references, indexed, cached = Pool(N_PAGES), {}, set(), []
    for number_of_step, (what, number) in enumerate(steps):
        available = N_PAGES - len(references)
        held = sorted(references)
        if what == "acquire" and number > available:
            with pytest.raises(PoolExhausted) as refused:
                pool.acquire(number)
            assert refused.value.data == {"asked_pages": number, "free_pages": available, "total_pages": N_PAGES}
            assert f"{number} more" in refused.value.message
            # What was only cached is given up before anybody is refused.
            indexed -= set(cached)
            cached = []
        elif what == "acquire":
            n_given_up = max(0, number - (available - len(cached)))
            indexed -= set(cached[:n_given_up])
            cached = cached[n_given_up:]
            pages = pool.acquire(number)
            assert len(set(pages)) == number
            assert set(pages).isdisjoint([*references, *cached])
            assert set(pages) <= set(range(N_PAGES))
            references |= dict.fromkeys(pages, 1)
        elif what == "revive" and cached:
            page = cached.pop(number % len(cached))
            pool.retain(page)
            references[page] = 1
        elif what == "index" and held:
            page = held[number % len(held)]
            pool.index.add(b"%d" % number_of_step, page)
            indexed.add(page)
        elif what in ("retain", "release") and held:
            page = held[number % len(held)]
            getattr(pool, what)(page)
            references[page] += 1 if what == "retain" else -1
            if not references[page]:
                del references[page]
                cached += [page] if page in indexed else []
        assert {page: pool.references(page) for page in range(N_PAGES) if pool.references(page)} == references
        assert (pool.n_cached, pool.n_free) == (len(cached), N_PAGES - len(references) - len(cached))
        assert pool.n_shared == sum(count > 1 for count in references.values())
        assert {page for page in range(N_PAGES) if page in pool.index} == indexed


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


class Holder:
    """Holds pages and gives them back, and remembers that it was asked."""

    def __init__(self, pool, n_pages, log, name):
        self.pool = pool
        self.pages = pool.acquire(n_pages)
        self.log, self.name = log, name
        pool.join(self)

    def shed(self):
        if not self.pages:
            return False
        self.log.append(self.name)
        self.pool.release(self.pages.pop())
        return True


def test_idle_holders_give_their_pages_the_longest_idle_first():
    pool, log = Pool(6), []
    old, young, busy = (Holder(pool, 2, log, name) for name in ("old", "young", "busy"))
    with pool.busy(young):
        pass
    with pool.busy(busy):
        assert len(pool.acquire(3)) == 3
        assert log == ["old", "old", "young"]
        with pytest.raises(PoolExhausted):
            pool.acquire(2)
    assert (len(old.pages), len(young.pages), len(busy.pages)) == (0, 0, 2)
    pool.part(busy)
    with pytest.raises(PoolExhausted):
        pool.acquire(2)


def test_what_is_cached_goes_before_what_is_held():
    pool, log = Pool(2), []
    Holder(pool, 1, log, "idle")
    (page,) = pool.acquire(1)
    pool.index.add(b"key", page)
    pool.release(page)
    assert pool.acquire(1) == [page]
    assert pool.index.find(b"key") is None
    assert log == []


def test_the_longest_unused_is_given_up_first():
    pool = Pool(3)
    pages = pool.acquire(3)
    for page in pages:
        pool.index.add(b"%d" % page, page)
    for page in (pages[1], pages[2], pages[0]):
        pool.release(page)
    pool.acquire(1)
    assert [pool.index.find(b"%d" % page) for page in pages] == [pages[0], None, pages[2]]
