"""What a request may ask of the sampler."""

import pytest

from clutch.errors import RequestError
from clutch.sampling.params import SamplingParams


def test_defaults_are_greedy():
    assert SamplingParams.from_wire({}) == SamplingParams() == SamplingParams(0.0, 0, 1.0, 0.0, 0, 512)


@pytest.mark.parametrize(
    "wire",
    [
        {"temperature": 0, "top_p": 1, "min_p": 1},
        {"temperature": 10.0, "top_k": 1_000_000, "max_tokens": 1_000_000},
        {"seed": 2**64 - 1, "max_tokens": 1, "top_p": 1e-6},
    ],
)
def test_edges_are_allowed(wire):
    params = SamplingParams.from_wire(wire)
    assert {name: getattr(params, name) for name in wire} == wire


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("temperature", 10.1),
        ("temperature", float("nan")),
        ("temperature", float("inf")),
        ("temperature", "1"),
        ("temperature", None),
        ("temperature", True),
        ("top_k", -1),
        ("top_k", 1_000_001),
        ("top_k", 1.0),
        ("top_k", False),
        ("top_p", 0),
        ("top_p", 1.01),
        ("min_p", -1e-9),
        ("min_p", 1.5),
        ("seed", -1),
        ("seed", 2**64),
        ("seed", 0.5),
        ("max_tokens", 0),
        ("max_tokens", 1_000_001),
        ("max_tokens", [1]),
    ],
)
def test_values_out_of_range_are_named(name, value):
    with pytest.raises(RequestError) as caught:
        SamplingParams.from_wire({name: value})
    assert caught.value.message.startswith(f"{name} is {value!r}"[:60])
    assert "allowed is a" in caught.value.message
    assert caught.value.data["field"] == name


def test_the_range_is_shown_in_full():
    with pytest.raises(RequestError, match="top_p is 0; allowed is a number above 0 and up to 1"):
        SamplingParams(top_p=0)
    with pytest.raises(RequestError, match="seed is -1; allowed is a whole number from 0 to 18446744073709551615"):
        SamplingParams(seed=-1)


def test_an_integer_too_long_to_print_is_an_ordinary_mistake():
    with pytest.raises(RequestError, match="temperature is an integer of 33220 bits"):
        SamplingParams.from_wire({"temperature": 10**10000})


@pytest.mark.parametrize("name", ["temp", "n", "", 3, "x" * 1000])
def test_unknown_fields_are_named(name):
    with pytest.raises(RequestError, match="unknown sampling parameter") as caught:
        SamplingParams.from_wire({name: 1})
    assert len(caught.value.message) < 250
