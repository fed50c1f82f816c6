"""The messages: what is encoded decodes to the same, and everything else is refused with E600.

The page's Python is MicroPython, which is not at hand here; instead the files that run there are held to what it has.
"""

import ast
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clutch.errors import RequestError
from clutch.protocol import EVENTS, MAX_MESSAGE_CHARS, REQUESTS, decode, encode

PY = Path(__file__).parents[2] / "py"
TABLES = {"requests": REQUESTS, "events": EVENTS}
KINDS = [(table, kind) for table, kinds in TABLES.items() for kind in kinds]
FIELDS = [(table, kind, name) for table, kind in KINDS for name in TABLES[table][kind]]
SAMPLES = {
    int: 7,
    float: 0.5,
    str: "é 😀 \ud83d ' \" \\ \n \u2028",
    list: [1, "a", None, [2.5]],
    dict: {"a": {"b": [True]}},
    bool: True,
    type(None): None,
}


def sample(rules, *, only_required=False):
    return {name: SAMPLES[types[0]] for name, (types, required) in rules.items() if required or not only_required}


@pytest.mark.parametrize(("table", "kind"), KINDS)
def test_every_kind_comes_back_as_it_went(table, kind):
    rules = TABLES[table][kind]
    for fields in (sample(rules), sample(rules, only_required=True)):
        assert decode(TABLES[table], encode(TABLES[table], kind, **fields)) == {"kind": kind, **fields}


@given(st.text(), st.dictionaries(st.text(), st.integers() | st.text() | st.booleans()))
def test_any_text_comes_back_as_it_went(text, data):
    fields = sample(EVENTS["error"]) | {"message": text, "data": data}
    assert decode(EVENTS, encode(EVENTS, "error", **fields)) == {"kind": "error", **fields}


@pytest.mark.parametrize(("table", "kind", "name"), FIELDS)
def test_every_type_of_every_field(table, kind, name):
    rules = TABLES[table][kind]
    for type_, value in SAMPLES.items():
        fields = {**sample(rules), name: value}
        text = json.dumps({"kind": kind, **fields})
        if type_ in rules[name][0]:
            assert decode(TABLES[table], text)[name] == value
            assert encode(TABLES[table], kind, **fields)
            continue
        with pytest.raises(RequestError) as refused:
            decode(TABLES[table], text)
        assert refused.value.data == {"kind": kind, "field": name}
        with pytest.raises(RequestError) as refused:
            encode(TABLES[table], kind, **fields)
        assert refused.value.data == {"kind": kind, "field": name}


def test_true_is_no_number():
    with pytest.raises(RequestError, match="wrong type"):
        decode(REQUESTS, '{"kind": "stop", "request_id": true}')


@pytest.mark.parametrize(("table", "kind", "name"), FIELDS)
def test_a_missing_field(table, kind, name):
    rules = TABLES[table][kind]
    fields = {key: value for key, value in sample(rules).items() if key != name}
    text = json.dumps({"kind": kind, **fields})
    if not rules[name][1]:
        assert name not in decode(TABLES[table], text)
        return
    with pytest.raises(RequestError, match="is missing") as refused:
        decode(TABLES[table], text)
    assert refused.value.data == {"kind": kind, "field": name}


@pytest.mark.parametrize(("table", "kind"), KINDS)
def test_an_unknown_field(table, kind):
    fields = {**sample(TABLES[table][kind]), "extra": 1}
    with pytest.raises(RequestError, match="is unknown"):
        decode(TABLES[table], json.dumps({"kind": kind, **fields}))
    with pytest.raises(RequestError, match="is unknown"):
        encode(TABLES[table], kind, **fields)


@pytest.mark.parametrize("kind", ["loaded", "", None, 3, [], {}, True])
def test_an_unknown_kind(kind):
    with pytest.raises(RequestError, match="Unknown message kind") as refused:
        decode(REQUESTS, json.dumps({"kind": kind}))
    assert ", ".join(sorted(REQUESTS)) in refused.value.hint
    with pytest.raises(RequestError):
        decode(REQUESTS, "{}")


@pytest.mark.parametrize("text", ["", "{", "nul", "'a'", '{"kind": "unload"} x', "\x00", "[" * 100_000])
def test_not_json(text):
    with pytest.raises(RequestError, match="not JSON"):
        decode(REQUESTS, text)


@pytest.mark.parametrize("text", ["[]", "1", '"unload"', "null", "true"])
def test_not_an_object(text):
    with pytest.raises(RequestError, match="not a JSON object"):
        decode(REQUESTS, text)


def test_too_long():
    room = MAX_MESSAGE_CHARS - len(encode(REQUESTS, "load", request_id=1, url=""))
    assert decode(REQUESTS, encode(REQUESTS, "load", request_id=1, url="x" * room))
    with pytest.raises(RequestError) as refused:
        decode(REQUESTS, encode(REQUESTS, "load", request_id=1, url="x" * (room + 1)))
    assert refused.value.data == {"length": MAX_MESSAGE_CHARS + 1, "limit": MAX_MESSAGE_CHARS}


# What PyScript's MicroPython brings, as far as the page may use it.
MICROPYTHON = {"json", "sys", "js", "pyscript", "clutch", "ui"}
PAGE_FILES = [PY / "clutch/errors.py", PY / "clutch/protocol.py", *sorted((PY / "ui").glob("*.py"))]


@pytest.mark.parametrize("path", PAGE_FILES, ids=lambda path: path.stem)
def test_what_runs_under_micropython_imports_only_what_is_there(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            modules = [node.module]
            if node.module == "clutch":
                assert {alias.name for alias in node.names} <= {"protocol", "errors"}
        for module in modules:
            assert module.split(".")[0] in MICROPYTHON, f"{path.name} line {node.lineno}"
            assert module.split(".")[0] != "clutch" or module in ("clutch", "clutch.errors", "clutch.protocol")


@pytest.mark.parametrize("path", PAGE_FILES, ids=lambda path: path.stem)
def test_what_runs_under_micropython_uses_no_syntax_that_it_lacks(path):
    lacking = (ast.Match, ast.TryStar, ast.AsyncFor)
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        assert not isinstance(node, lacking), f"{path.name} line {node.lineno}"
