import pytest

from ui import settings

GOOD = {"max_tokens": "64", "temperature": "0.7", "top_k": "40", "top_p": "1", "min_p": " 0.05 ", "seed": "7"}


def test_good_fields_become_numbers_of_their_type():
    params, problems = settings.parse(GOOD)
    assert problems == {}
    assert params == {
        "max_tokens": 64,
        "temperature": 0.7,
        "top_k": 40,
        "top_p": 1.0,
        "min_p": 0.05,
        "seed": 7,
    }
    assert isinstance(params["top_p"], float)


def test_first_values_are_good_and_leave_the_seed_open():
    params, problems = settings.parse(settings.initial({}))
    assert problems == {}
    assert set(params) == set(settings.FIELDS) - {"seed"}


def test_url_values_win_even_when_bad():
    texts = settings.initial({"temperature": "hot", "other": "1"})
    assert texts["temperature"] == "hot" and "other" not in texts
    assert settings.parse(texts)[1] == {"temperature": "problem.number"}


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("max_tokens", "0", "problem.range"),
        ("max_tokens", "1.5", "problem.integer"),
        ("max_tokens", "1_000", "problem.integer"),
        ("max_tokens", "", "problem.empty"),
        ("max_tokens", "\uff17", "problem.integer"),
        ("temperature", "-0.1", "problem.range"),
        ("temperature", "nan", "problem.number"),
        ("temperature", "inf", "problem.number"),
        ("temperature", "1e400", "problem.range"),
        ("temperature", "0x1", "problem.number"),
        ("top_p", "1.01", "problem.range"),
        ("seed", "-1", "problem.range"),
        ("seed", "4294967296", "problem.range"),
    ],
)
def test_bad_fields_name_their_problem(name, text, problem):
    params, problems = settings.parse({**GOOD, name: text})
    assert problems == {name: problem}
    assert name not in params


def test_what_the_address_says_about_a_load():
    assert settings.load_fields({}) == {}
    parameters = {"context_length": "0", "pool_positions": "4096", "kv_format": "q8", "seed": "1"}
    assert settings.load_fields(parameters) == {"context_length": 0, "pool_positions": 4096, "kv_format": "q8"}
    assert settings.load_fields({"context_length": "many", "pool_positions": "-1", "kv_format": ""}) == {}


def test_what_the_address_alone_says_about_a_request():
    assert settings.request_fields({}) == {}
    assert settings.request_fields({"reuse": "off", "top_logits": "5"}) == {"reuse": False, "top_logits": 5}
    assert settings.request_fields({"reuse": "on", "top_logits": "x"}) == {}


def test_overflow_is_one_of_two():
    assert settings.overflow("drop_oldest") == "drop_oldest"
    assert settings.overflow(None) == settings.overflow("other") == "stop"


def test_switch():
    assert settings.is_on("1") and settings.is_on("True")
    assert not settings.is_on(None) and not settings.is_on("0") and not settings.is_on("")
