"""The page's files agree with each other, and keep the walls of the design."""

import json
import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path

from ui import benchmark_tables, controls, pool, settings, status

ROOT = Path(__file__).resolve().parents[2]
UI = sorted((ROOT / "py" / "ui").glob("*.py"))
CODE = {path.name: path.read_text() for path in UI}
HTML = (ROOT / "index.html").read_text()
EN = json.loads((ROOT / "static/strings/en.json").read_text())
ZH = json.loads((ROOT / "static/strings/zh.json").read_text())

_IDLE_AND_BUSY = (*controls.IDLE, *controls.BUSY)
_ENDS = ("", *status.LOAD_REASONS)
_DOTS = {controls.tab_state(state, "abort", is_troubled) for state in _IDLE_AND_BUSY for is_troubled in (False, True)}
_RECOVERIES = {controls.recovery(state, end) for state in _IDLE_AND_BUSY for end in _ENDS} - {None}
# Keys that are put together at run time: prefix -> what may follow.
FAMILIES = {
    "kernels.": status.ORIGINS,
    "status.": (*_IDLE_AND_BUSY, status.shown_state("stopping", True)),
    "status.ended.": (*status.REASONS, *status.LOAD_REASONS),
    "phase.": status.PHASES,
    "recovery.": _RECOVERIES,
    "role.": ("system", "user", "assistant"),
    "chat.state.": _DOTS,
    "button.": ("restore", "delete"),
    "benchmark.ended.": ("done", "stopped"),
    "benchmark.step.": ("decode", "prefill"),
    "benchmark.column.": benchmark_tables.COLUMNS,
    "benchmark.token.": benchmark_tables.TOKEN_LINES,
    # The page's own notices.
    "notice.": ("trimmed", "saved"),
    "error.": re.findall(r'code = "(E\d+)"', (ROOT / "py/clutch/errors.py").read_text()),
}
# These may exist or not: the page asks `Strings.has` first.
OPTIONAL = re.compile(r"mark\.\w+|error\.E\d+(\.\w+)?\.(message|hint)|notice\.E\d+")


class _Markup(HTMLParser):
    def __init__(self):
        super().__init__()
        self.elements = []
        self.script_text = ""
        self._tag = ""

    def handle_starttag(self, tag, attrs):
        self._tag = tag
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self._tag in ("script", "style"):
            self.script_text += data.strip()

    def handle_endtag(self, tag):
        self._tag = ""


def _markup():
    markup = _Markup()
    markup.feed(HTML)
    return markup


def _used_keys():
    literal = set(re.findall(r'data-string(?:-label|-placeholder|-title)?="([^"]+)"', HTML))
    for text in CODE.values():
        literal |= {key for key in re.findall(r'"([a-z_]+(?:\.[A-Za-z0-9_]+)+)"', text) if not key.endswith(".py")}
    literal -= {"clutch.language"}
    return literal | {prefix + member for prefix, members in FAMILIES.items() for member in members}


def test_pyscript_lists_exactly_the_files_the_page_imports():
    config = tomllib.loads((ROOT / "pyscript.toml").read_text())
    modules = [f"py/ui/{path.name}" for path in UI if path.name != "main.py"]
    modules += ["py/clutch/errors.py", "py/clutch/protocol.py"]
    expected = {f"./{name}": "./" + name.removeprefix("py/") for name in modules}
    expected |= {f"./static/strings/{code}.json": f"./strings/{code}.json" for code in ("en", "zh")}
    assert config["files"] == expected
    assert all((ROOT / name).is_file() for name in config["files"])
    assert config["interpreter"].startswith("./static/vendor/")


def test_page_has_no_inline_code_and_nothing_from_elsewhere():
    markup = _markup()
    assert markup.script_text == ""
    for tag, attributes in markup.elements:
        assert tag != "style" and "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")], attributes
        for name in ("src", "href", "config"):
            assert "//" not in attributes.get(name, ""), attributes


def test_files_named_by_page_and_style_exist():
    named = [a.get("href") or a.get("src") for _, a in _markup().elements]
    named += ["static/" + name for name in re.findall(r'url\("([^"]+)"\)', (ROOT / "static/style.css").read_text())]
    for name in filter(None, named):
        if "static/vendor/" not in name:
            assert (ROOT / name).is_file(), name


def test_every_element_the_code_asks_for_is_in_the_page_once():
    ids = [attributes["id"] for _, attributes in _markup().elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    asked = {name for text in CODE.values() for name in re.findall(r'element\("([\w-]+)"\)', text)}
    asked |= {prefix + name for prefix in ("setting-", "problem-") for name in settings.FIELDS}
    asked |= {*controls.CHAT_BUTTONS, *(f"memory-{name}" for name in pool.GAUGES)}
    assert len(asked) > 20
    assert asked <= set(ids)


def test_contract_elements():
    ids = {attributes.get("id"): tag for tag, attributes in _markup().elements}
    assert (ids["prompt"], ids["progress"], ids["settings"], ids["model-file"]) == (
        "textarea",
        "progress",
        "details",
        "input",
    )
    assert (ids["memory"], ids["saved"], ids["pool-picture"], ids["chats"]) == ("details", "details", "canvas", "nav")
    assert {ids[name] for name in controls.CHAT_BUTTONS} == {"button"}
    assert {ids[name] for name in ("generate", "continue", "stop", "reset", "edit", "recover")} == {"button"}
    assert {"transcript", "status", "numbers", "error", "notice", "self-test", "kernels"} <= set(ids)
    names = {attributes.get("name") for _, attributes in _markup().elements}
    assert {*settings.FIELDS, "raw", "overflow", "with_kv"} <= names


def test_the_choices_at_a_full_context_are_the_settings():
    assert tuple(attributes["value"] for tag, attributes in _markup().elements if tag == "option") == settings.OVERFLOWS


def test_the_row_of_chats_is_a_list_of_tabs():
    tabs = next(attributes for _, attributes in _markup().elements if attributes.get("id") == "tabs")
    assert tabs["role"] == "tablist" and tabs["aria-label"]


def test_languages_have_the_same_keys_and_fields():
    assert EN.keys() == ZH.keys()
    for key, sentence in EN.items():
        assert sorted(re.findall(r"{\w+}", sentence)) == sorted(re.findall(r"{\w+}", ZH[key])), key
        assert sentence.strip() and ZH[key].strip(), key


def test_every_sentence_used_exists_and_every_sentence_is_used():
    used = _used_keys()
    assert used - EN.keys() == set()
    assert {key for key in EN.keys() - used if not OPTIONAL.fullmatch(key)} == set()


def test_static_markup_says_what_the_english_table_says():
    for key, sentence in re.findall(r'data-string="([^"]+)"[^>]*>([^<]+)<', HTML):
        assert EN[key] == sentence, key
    titled = [attributes for _, attributes in _markup().elements if "data-string-title" in attributes]
    assert titled
    for attributes in titled:
        assert attributes["title"] == attributes["aria-label"] == EN[attributes["data-string-title"]]


def test_page_builds_no_markup_from_text_and_knows_no_gpu():
    for name, text in CODE.items():
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "exec(",
            "Function",
        ):
            assert word not in text, f"{name}: {word}"
        assert ".gpu" not in text and "requestAdapter" not in text, name
    assert [name for name, text in CODE.items() if "js.Worker" in text] == ["engine_client.py"]


def test_page_code_stays_within_what_micropython_runs():
    for name, text in CODE.items():
        assert not re.search(r"^\s*(import|from) (typing|dataclasses|enum|abc)\b", text, re.MULTILINE), name
        assert not re.search(r"[(\[]\*[\w]+, ", re.sub(r"def \w+\(.*", "", text)), f"{name}: unpacking in a display"
        assert len(text.splitlines()) <= 250, name
