"""Sequences on one small pool, against a GPU's memory that is simulated.

A cell of the memory stands for one position's keys and values: it holds the tokens of the whole prefix, because they
depend on all of it. Whatever happens, every committed position of every sequence must find its own prefix there.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from clutch.errors import PoolExhausted
from clutch.kv.gauges import gauges
from clutch.kv.pool import PAGE_POSITIONS, Pool
from clutch.kv.sequence import Sequence

N_PAGES = 7
MOST_SEQUENCES = 4
NOISE = "written by a step that was discarded"

# Few tokens and long runs of one, so that prompts share prefixes.
PROMPTS = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 20)), min_size=1, max_size=4).map(
    lambda runs: [token for token, length in runs for _ in range(length)]
)
ASK = st.tuples(st.just("ask"), st.integers(0, 9), PROMPTS, st.booleans(), st.integers(0, 3))
STEPS = st.lists(
    st.one_of(
        ASK,
        ASK,
        st.tuples(st.just("write"), st.integers(0, 9), st.integers(1, 25), st.integers(0, 2)),
        st.tuples(st.just("rewind"), st.integers(0, 9), st.integers(0, 100)),
        st.tuples(st.just("fork"), st.integers(0, 9)),
        st.tuples(st.just("close"), st.integers(0, 9)),
        st.tuples(st.just("forget"), st.none()),
    ),
    max_size=25,
)


class World:
    """Sequences and the memory behind them."""

    def __init__(self):
        self.pool = Pool(N_PAGES, "a model")
        self.memory = [[None] * PAGE_POSITIONS for _ in range(N_PAGES)]
        self.sequences = [Sequence(self.pool, 0)]

    def do(self, what, number, *rest):
        sequence = self.sequences[(number or 0) % len(self.sequences)]
        match what:
            case "ask":
                self._ask(sequence, *rest)
            case "write":
                n_tokens, n_discarded = rest
                self._write(sequence, [2] * n_tokens, n_discarded)
            case "rewind":
                sequence.rewind(min(sequence.length, rest[0]))
            case "fork" if len(self.sequences) < MOST_SEQUENCES:
                self.sequences.append(sequence.fork(len(self.sequences)))
            case "close":
                sequence.close()
                self.sequences.remove(sequence)
                self.sequences = self.sequences or [Sequence(self.pool, 0)]
            case "forget":
                self.pool.forget_cached()

    def _ask(self, sequence, prompt, reuse, n_discarded):
        matched = sequence.match(prompt)
        assert matched <= len(prompt) - 1
        with self.pool.busy(sequence):
            sequence.begin(prompt, reuse=reuse)
            sequence.extend(prompt) if reuse else None
            assert sequence.length == (matched if reuse else 0)
            assert sequence.token_ids == prompt[: sequence.length]
            self._write(sequence, prompt[sequence.length :], n_discarded)

    def _write(self, sequence, token_ids, n_discarded):
        """Write and commit tokens one by one, as far as there is room; then some that are not committed."""
        with self.pool.busy(sequence):
            for token_id in token_ids:
                if not self._put(sequence, sequence.length, tuple([*sequence.token_ids, token_id])):
                    return
                sequence.commit([token_id])
            for position in range(sequence.length, sequence.length + n_discarded):
                self._put(sequence, position, NOISE)

    def _put(self, sequence, position, value):
        try:
            copy = sequence.reserve(position + 1)
        except PoolExhausted:
            return False
        if copy is not None:
            self.memory[copy.target] = list(self.memory[copy.source])
        self.memory[sequence.table.pages[position // PAGE_POSITIONS]][position % PAGE_POSITIONS] = value
        return True

    def check(self):
        references = [0] * N_PAGES
        for sequence in self.sequences:
            assert sequence.length == sequence.table.length
            assert len(set(sequence.table.pages)) == len(sequence.table.pages)
            for page in sequence.table.pages:
                references[page] += 1
            for position in range(sequence.length):
                page = sequence.table.pages[position // PAGE_POSITIONS]
                cell = self.memory[page][position % PAGE_POSITIONS]
                assert cell == tuple(sequence.token_ids[: position + 1])
        assert references == [self.pool.references(page) for page in range(N_PAGES)]
        seen = gauges(self.pool, {number: sequence.table for number, sequence in enumerate(self.sequences)})
        assert seen["used"] + seen["cached"] + seen["free"] == N_PAGES
        assert seen["used"] == sum(count > 0 for count in references)
        assert seen["cells"].count(".") == seen["free"]
        assert seen["cells"].count("-") == seen["cached"]
        assert sum(cell.isupper() for cell in seen["cells"]) == seen["shared"] == sum(count > 1 for count in references)


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_every_committed_position_finds_its_own_prefix(steps):
    world = World()
    for step in steps:
        world.do(*step)
        world.check()
    for sequence in world.sequences:
        sequence.close()
    world.pool.forget_cached()
    assert world.pool.n_free == N_PAGES


def filled(pool, slot, token_ids):
    sequence = Sequence(pool, slot)
    with pool.busy(sequence):
        sequence.begin(token_ids)
        sequence.extend(token_ids)
        rest = token_ids[sequence.length :]
        sequence.reserve(len(token_ids))
        sequence.commit(rest)
    return sequence, len(rest)


def test_a_prefix_is_computed_once_for_all_sequences():
    pool = Pool(8)
    system = list(range(32))
    one, n_computed = filled(pool, 0, [*system, 90, 91])
    assert n_computed == 34
    other, n_computed = filled(pool, 1, [*system, 80])
    assert n_computed == 1
    assert other.table.pages[:2] == one.table.pages[:2]


def test_the_last_token_is_always_computed():
    pool = Pool(8)
    tokens = list(range(32))
    filled(pool, 0, tokens)
    _, n_computed = filled(pool, 1, tokens)
    assert n_computed == 16


def test_another_model_shares_nothing():
    tokens = list(range(32))
    keys = [Pool(1, identity).index.chained(Pool(1, identity).index.root, tokens[:16]) for identity in ("a", "b")]
    assert keys[0] != keys[1]


def test_the_same_block_behind_another_prefix_is_another_page():
    pool = Pool(8)
    filled(pool, 0, [*[1] * 16, *[7] * 16, 0])
    _, n_computed = filled(pool, 1, [*[2] * 16, *[7] * 16, 0])
    assert n_computed == 33


def test_what_was_left_behind_is_found_again():
    pool = Pool(8)
    first = [*range(16), *[5] * 20]
    sequence, _ = filled(pool, 0, first)
    sequence.begin([*range(16), *[6] * 20])
    assert (sequence.length, pool.n_cached) == (16, 1)
    assert sequence.match(first) == 32


def test_an_idle_sequence_gives_its_tail_and_keeps_its_head():
    pool = Pool(4)
    idle, _ = filled(pool, 0, list(range(40)))
    with pool.busy(needy := Sequence(pool, 1)):
        needy.reserve(32)
    assert idle.length == 32
    assert idle.match(list(range(40))) == 32


def test_gauges_by_hand():
    pool = Pool(6)
    one, _ = filled(pool, 0, list(range(20)))
    other = one.fork(3)
    with pool.busy(other):
        other.reserve(24)
        other.commit([1] * 4)
    other.begin([*range(20), 9])
    seen = gauges(pool, {0: one.table, 3: other.table})
    assert (seen["total"], seen["used"], seen["shared"], seen["cached"], seen["free"]) == (6, 3, 1, 0, 3)
    assert seen["utilisation"] == (16 + 4 + 4) / 48
    assert sorted(seen["cells"]) == [".", ".", ".", "0", "3", "A"]
    assert gauges(Pool(2), {})["utilisation"] is None


def test_a_branch_is_not_found_behind_other_tokens():
    pool = Pool(8)
    ours, theirs, common = [1] * 16, [2] * 16, [7] * 16
    sequence, _ = filled(pool, 0, [*ours, *common, 0])
    sequence.begin([*theirs, 0])
    sequence.reserve(17)
    sequence.commit([*theirs, 0])
    assert sequence.match([*theirs, *common, 0]) == 16
    sequence.rewind(16)
    assert sequence.match([*ours, *common, 0]) == 32
