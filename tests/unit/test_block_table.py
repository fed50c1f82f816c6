"""The block table: pages for positions, and which of them are committed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clutch.errors import PoolExhausted
from clutch.kv.pool import PAGE_POSITIONS, Pool
from clutch.kv.table import BlockTable

N_PAGES = 5


def pages_of(length):
    return -(-length // PAGE_POSITIONS)


@given(st.lists(st.tuples(st.sampled_from(["reserve", "commit", "truncate"]), st.integers(0, 100)), max_size=40))
def test_it_holds_the_pages_that_its_positions_need(steps):
    pool = Pool(N_PAGES)
    table = BlockTable(pool)
    for what, number in steps:
        before = list(table.pages)
        if what == "reserve" and pages_of(number) > N_PAGES:
            with pytest.raises(PoolExhausted):
                table.reserve(number)
            assert table.pages == before
        elif what == "reserve":
            assert table.reserve(number) == len(before)
            assert table.pages[: len(before)] == before
            assert len(table.pages) == max(len(before), pages_of(number))
        elif what == "commit":
            room = len(table.pages) * PAGE_POSITIONS - table.length
            length = table.length + min(number, room)
            table.commit(min(number, room))
            assert table.length == length
        else:
            length = min(number, table.length)
            table.truncate(length)
            assert (table.length, len(table.pages)) == (length, pages_of(length))
            assert table.pages == before[: len(table.pages)]
        assert len(set(table.pages)) == len(table.pages) == N_PAGES - pool.n_free


def test_positions_without_a_page_cannot_be_committed():
    table = BlockTable(Pool(1))
    table.reserve(1)
    table.commit(PAGE_POSITIONS)
    with pytest.raises(AssertionError):
        table.commit(1)


def test_it_cannot_grow_by_truncating():
    table = BlockTable(Pool(1))
    table.reserve(8)
    table.commit(4)
    with pytest.raises(AssertionError):
        table.truncate(5)


def test_truncating_gives_back_pages_that_were_only_reserved():
    pool = Pool(N_PAGES)
    table = BlockTable(pool)
    table.reserve(N_PAGES * PAGE_POSITIONS)
    table.commit(PAGE_POSITIONS)
    table.truncate(PAGE_POSITIONS)
    assert pool.n_free == N_PAGES - 1


def test_two_tables_never_share_a_page_unasked():
    pool = Pool(4)
    one, other = BlockTable(pool), BlockTable(pool)
    one.reserve(20)
    other.reserve(20)
    one.reserve(32)
    assert set(one.pages).isdisjoint(other.pages)
    with pytest.raises(PoolExhausted):
        other.reserve(33)
