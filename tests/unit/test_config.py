"""The budgets: the defaults hold, and each number is checked from both sides."""

import pytest

from clutch.config import KV_FORMATS, EngineConfig
from clutch.errors import RequestError


def test_the_defaults_hold():
    config = EngineConfig()
    assert config.context_length % 16 == 0
    assert config.steps_in_flight == 8


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("context_length", [16, 4096], [0, -16, 8, 15, 17]),
        ("asked_context_length", [16, None], [0, 8, 17]),
        ("pool_positions", [16, None], [0, 8, 17]),
        ("pool_contexts", [1, 4], [0, -1]),
        ("prefill_tokens", [8, 64], [0, -8, 4, 12]),
        ("attention_splits", [1, 7], [0, -1]),
        ("steps_in_flight", [1, 3], [0, -1]),
        ("upload_bytes", [1 << 16, (1 << 16) + 4], [0, (1 << 16) - 4, (1 << 16) + 1]),
        ("prompt_bytes", [1], [0, -1]),
    ],
)
def test_each_number(name, good, bad):
    for value in good:
        assert getattr(EngineConfig(**{name: value}), name) == value
    for value in bad:
        with pytest.raises(RequestError) as refused:
            EngineConfig(**{name: value})
        assert refused.value.data == {"field": name, "value": value}
        assert f"{name} is {value}" in refused.value.message


def test_the_format_of_keys_and_values():
    assert [EngineConfig(kv_format=kv).kv_format for kv in KV_FORMATS] == ["f16", "q8"]
    with pytest.raises(RequestError, match="f16, q8"):
        EngineConfig(kv_format="q4")
