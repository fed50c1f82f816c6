"""The step uniform: what `settings` packs is what the kernels read, field by field, and what the worker writes."""

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from clutch.gpu import step as layout
from clutch.gpu.step import HEADER_FIELDS, MAX_SEQUENCES, SEQUENCE_BYTES, SEQUENCE_FIELDS, SLOT_BYTES, settings
from clutch.sampling.params import SamplingParams
from tests.support.kernel_reference import Sequence, Step

REPLAY = Path(__file__).parents[2] / "worker" / "replay.js"
PARAMS = st.builds(
    SamplingParams,
    temperature=st.floats(0, 10, width=32),
    top_k=st.integers(0, 1_000_000),
    top_p=st.floats(0.125, 1, width=32),
    min_p=st.floats(0, 1, width=32),
    seed=st.integers(0, 2**64 - 1),
)


@given(PARAMS, st.integers(0, 2**20), st.integers(0, 2**20))
def test_every_setting_arrives_in_its_field(params, table_offset, token_offset):
    sequence = Sequence.unpack(bytes(4) + settings(params, table_offset, token_offset))
    assert sequence.params() == SamplingParams(
        params.temperature, params.top_k, params.top_p, params.min_p, params.seed
    )
    assert (sequence.position, sequence.table_offset, sequence.token_offset) == (0, table_offset, token_offset)


def test_the_position_comes_first_and_all_sequences_fit_a_slot():
    assert SEQUENCE_FIELDS[0] == ("position", "u32")
    assert len(settings(SamplingParams(), 0, 0)) == 4 * len(SEQUENCE_FIELDS) - 4
    assert 4 * len(SEQUENCE_FIELDS) <= SEQUENCE_BYTES
    assert 4 * len(HEADER_FIELDS) <= layout.HEADER_BYTES
    assert len(Step((Sequence(),) * MAX_SEQUENCES).pack()) == SLOT_BYTES


def test_the_worker_has_the_same_layout():
    constants = dict(re.findall(r"^const ([A-Z_]+) = (\d+);$", REPLAY.read_text("utf-8"), re.M))
    for name in ("SLOT_BYTES", "HEADER_BYTES", "SEQUENCE_BYTES", "MAX_SEQUENCES", "RESULT_BYTES"):
        assert int(constants[name]) == getattr(layout, name)
