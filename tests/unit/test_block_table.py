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
            assert table.reserve(number) is None
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


def test_the_gpu_is_told_what_changed_since_it_was_told_last():
    pool = Pool(N_PAGES)
    table = BlockTable(pool)
    table.reserve(20)
    assert table.take_changes() == (0, table.pages)
    assert table.take_changes() == (2, [])
    table.reserve(33)
    assert table.take_changes() == (2, table.pages[2:])
    table.commit(20)
    table.truncate(16)
    assert table.take_changes() == (1, [])
    table.reserve(40)
    assert table.take_changes() == (1, table.pages[1:])


def test_a_fork_shares_every_page_and_whoever_writes_first_copies_the_last():
    pool = Pool(4)
    table = BlockTable(pool)
    table.reserve(20)
    table.commit(20)
    fork = table.fork()
    assert fork.pages == table.pages
    assert pool.n_free == 2
    copy = fork.reserve(21)
    assert (copy.source, copy.target) == (table.pages[1], fork.pages[1])
    assert fork.pages[0] == table.pages[0] != fork.pages[1] != table.pages[1]
    assert fork.take_changes() == (0, fork.pages)
    # Now the page is its own, and the other's is the other's.
    assert fork.reserve(22) is None
    assert table.reserve(21) is None


def test_a_fork_at_the_end_of_a_page_copies_nothing():
    pool = Pool(4)
    table = BlockTable(pool)
    table.reserve(16)
    table.commit(16)
    fork = table.fork()
    assert fork.reserve(17) is None
    assert table.reserve(17) is None
    assert pool.n_free == 1


def test_nothing_changes_when_there_is_no_page_for_the_copy():
    pool = Pool(1)
    table = BlockTable(pool)
    table.reserve(4)
    table.commit(4)
    fork = table.fork()
    with pytest.raises(PoolExhausted):
        fork.reserve(5)
    assert fork.pages == table.pages
    assert pool.references(table.pages[0]) == 2


def cut_indexed_page(n_pages):
    pool = Pool(n_pages)
    table = BlockTable(pool)
    table.reserve(16)
    table.commit(16)
    pool.index.add(b"key", table.pages[0])
    table.truncate(7)
    return table, pool


def test_a_page_that_can_be_found_is_not_overwritten():
    table, pool = cut_indexed_page(2)
    copy = table.reserve(8)
    assert (copy.source, copy.target) == (pool.index.find(b"key"), table.pages[0])
    assert pool.n_cached == 1


def test_unless_there_is_no_room_for_a_copy():
    table, pool = cut_indexed_page(1)
    assert table.reserve(8) is None
    assert pool.index.find(b"key") is None


def test_the_gpu_is_told_of_a_copy():
    pool = Pool(4)
    table = BlockTable(pool)
    table.reserve(20)
    table.commit(20)
    table.take_changes()
    fork = table.fork()
    table.reserve(21)
    assert table.take_changes() == (1, table.pages[1:])
    assert fork.pages[1] != table.pages[1]
