"""The step uniform: what `settings` packs is what the kernels read, field by field."""

from hypothesis import given
from hypothesis import strategies as st

from clutch.gpu.step import FIELDS, SLOT_BYTES, settings
from clutch.sampling.params import SamplingParams
from tests.support.kernel_reference import Step

PARAMS = st.builds(
    SamplingParams,
    temperature=st.floats(0, 10, width=32),
    top_k=st.integers(0, 1_000_000),
    top_p=st.floats(0.125, 1, width=32),
    min_p=st.floats(0, 1, width=32),
    seed=st.integers(0, 2**64 - 1),
)


@given(PARAMS, st.integers(0, 2**20))
def test_every_setting_arrives_in_its_field(params, table_offset):
    step = Step.unpack(bytes(8) + settings(params, table_offset))
    assert step.params() == SamplingParams(params.temperature, params.top_k, params.top_p, params.min_p, params.seed)
    assert step.table_offset == table_offset
    assert (step.position, step.n_tokens) == (0, 0)


def test_position_and_tokens_come_first_and_all_fits_a_slot():
    assert [name for name, _ in FIELDS[:2]] == ["position", "n_tokens"]
    assert len(settings(SamplingParams(), 0)) == 4 * len(FIELDS) - 8
    assert 4 * len(FIELDS) <= SLOT_BYTES
