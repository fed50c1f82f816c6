"""A stranger's template: what it needs works, what could hurt is refused, and nothing runs away."""

import re
from datetime import datetime

import pytest

from clutch.errors import TemplateError
from clutch.text.chat import MAX_TEMPLATE_BYTES, ChatTemplate
from clutch.text.template_meter import MAX_SIZE, MAX_STEPS, MAX_WORK

MESSAGES = [{"role": "user", "content": " <a> & 'é' "}, {"role": "assistant", "content": "ok"}]


def render(source, messages=MESSAGES):
    return ChatTemplate(source, "<s>", "</s>").render(messages)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ bos_token }}{{ messages | length }}{{ eos_token }}", "<s>2</s>"),
        ("{{ messages[0].content | trim }}", "<a> & 'é'"),
        ("{{ messages[0]['content'] | tojson }}", "\" <a> & 'é' \""),
        (
            "{{ {'b': [1, 'é'], 'a': none} | tojson(indent=1, sort_keys=true) }}",
            '{\n "a": null,\n "b": [\n  1,\n  "é"\n ]\n}',
        ),
        ("{% for m in messages %}{% if loop.last %}{% break %}{% endif %}{{ loop.index0 }}{% endfor %}", "0"),
        (
            "{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m.role }}{% endfor %}",
            "assistant",
        ),
        ("{% for m in messages if m.role == 'user' %}{{ loop.length }}{% else %}none{% endfor %}", "1"),
        ("{% for m in nothing %}{% else %}none{% endfor %}", "none"),
        (
            "{% for k, v in messages[1].items() %}{{ k ~ '=' ~ v ~ none ~ 1 ~ missing }};{% endfor %}",
            "role=assistantNone1;content=okNone1;",
        ),
        (
            "{% set ns = namespace(n=0) %}{% for i in range(4) %}{% set ns.n = ns.n + i * 2 %}{% endfor %}{{ ns.n }}",
            "12",
        ),
        ("{% macro twice(x) %}{{ x }}{{ x }}{% endmacro %}{{ twice('ab') }}", "abab"),
        ("{% set x %}<{{ messages[1].content }}>{% endset %}{{ x }}", "<ok>"),
        ("{{ 'a-b-c'.split('-')[-1] }}{{ 'aXb'.replace('X', '--') }}{{ '/'.join(['p', 'q']) }}", "ca--bp/q"),
        ("{{ messages | map(attribute='role') | join(', ') | upper }}", "USER, ASSISTANT"),
        ("{{ (messages | selectattr('role', 'equalto', 'user') | list)[0].content is string }}", "True"),
        (
            "{{ messages[::-1][0].role }}{{ 7 % 4 }}{{ 2 ** 3 }}{{ '=' * 3 }}{{ 1 + 1.5 }}",
            "assistant38===2.5",
        ),
        ("{{ missing }}{{ messages[0].missing | default('d') }}", "d"),
        ("  {% if true %}\n  x\n  {% endif %}\n", "  x\n"),
        ("{{ '<b>' | safe | string }}{{ 'a' | replace('a', 'b', 1) }}", "<b>b"),
        ("{% filter upper %}x{{ 'y' }}{% endfilter %}", "XY"),
    ],
)
def test_what_chat_templates_use(source, expected):
    assert render(source) == expected


def test_the_date():
    assert render("{{ strftime_now('%Y') }}") in {str(datetime.now().year), str(datetime.now().year - 1)}


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.__class__ }}",
        "{{ messages | attr('append') }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update({'role': 'x'}) }}",
        "{{ messages[0].pop('role') }}",
        "{{ '{0.__class__}'.format(1) }}",
        "{{ '{:>1000000000}'.format(1) }}",
        "{{ ('{:>1000000000}' | format(1)) }}",
        "{% set f = 'x'.format_map %}{{ f({}) }}",
        "{{ ['{0.__class__}'] | map('format', 1) | list | length }}",
        "{{ lipsum(n=1000000) }}",
        "{{ cycler('a').next() }}",
        "{{ self.__init__ }}",
        "{{ raise_exception.__globals__ }}",
        "{{ 'x'.replace.__closure__ }}",
        "{{ strftime_now.__module__ }}",
        "{{ strftime_now('x' * 300) }}",
        "{{ 'a'.ljust(1000000000) }}",
        "{{ 'a'.center(1000000000) }}",
        "{{ 'a'.zfill(1000000000) }}",
        "{{ '\t'.expandtabs(1000000000) }}",
        "{{ 'a' | indent(1000000000) }}",
        "{{ 'a' | center(1000000000) }}",
        "{{ 1.5 | round(1000000000, 'ceil') }}",
        "{{ (1).to_bytes(1000000000) }}",
        "{{ [1] | batch(1000000000, 'x') | list | length }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ [] | tojson(indent=1000000000) }}",
        "{{ messages }}",
        "{{ messages | string }}",
        "{% include 'x' %}",
        "{% import 'x' as x %}",
        "{% extends 'x' %}",
        "{% for m in 3 %}{% endfor %}",
        "{{ 1 / 0 }}",
        "{{ missing.field }}",
        "{{ {1: 2} | tojson(sort_keys=true) | nosuchfilter }}",
    ],
)
def test_what_is_refused(source):
    with pytest.raises(TemplateError):
        render(source)


DOUBLING = "{% set ns = namespace(s='0123456789abcdef') %}{% for i in range(60) %}"


@pytest.mark.parametrize(
    ("source", "bound"),
    [
        ("{{ 'a' * 10**9 }}", MAX_SIZE),
        ("{{ 10**9 * 'a' }}", MAX_SIZE),
        ("{% set x = [0] * 10**9 %}", MAX_SIZE),
        ("{{ 2 ** 999 }}", 256),
        (DOUBLING.replace("'0123456789abcdef'", "3") + "{% set ns.s = ns.s * ns.s %}{% endfor %}", 256),
        (DOUBLING + "{% set ns.s = ns.s + ns.s %}{% endfor %}", MAX_SIZE),
        (DOUBLING + "{% set ns.s = ns.s ~ ns.s %}{% endfor %}", MAX_SIZE),
        (DOUBLING + "{% set ns.s = [ns.s, ns.s] | join %}{% endfor %}", MAX_SIZE),
        (DOUBLING + "{% set ns.s = ns.s.join(['', '', '']) %}{% endfor %}", MAX_SIZE),
        (DOUBLING + "{% set ns.s = ns.s.replace('a', 'aa' * 99) %}{% endfor %}", MAX_SIZE),
        (DOUBLING + "{% set ns.s = ns.s | replace('', 'aa') %}{% endfor %}", MAX_SIZE),
        (DOUBLING + "{% set ns.s = ns.s | map('replace', '', 'aaaa') | join %}{% endfor %}", MAX_STEPS),
        (DOUBLING + "{% set x %}{{ ns.s }}{{ ns.s }}{% endset %}{% set ns.s = x %}{% endfor %}", MAX_SIZE),
        (DOUBLING + "{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s | tojson }}", MAX_STEPS),
        (
            "{% set s = 'a,' * 2000000 %}{% for i in range(6) %}{% set x = s.split(',') %}{% endfor %}",
            MAX_WORK,
        ),
        ("{% set s = 'ab' * 2000000 %}{% for i in range(6) %}{% set x = s | list %}{% endfor %}", MAX_WORK),
        ("{% set s = 'ab' * 2000000 %}{% for i in range(99) %}{{ s.count('b') }}{% endfor %}", MAX_WORK),
        ("{% set s = 'ab' * 2000000 %}{% for i in range(99) %}{{ s | length }}{% endfor %}", MAX_WORK),
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", MAX_STEPS),
        (
            "{% set r = range(999) | list %}{% for a in r %}{% for b in r %}{% for c in r %}"
            "{% endfor %}{% endfor %}{% endfor %}",
            MAX_STEPS,
        ),
        (
            "{% macro f(n) %}{% if n %}{% set x = f(n - 1) + f(n - 1) %}{% endif %}{% endmacro %}{{ f(40) }}",
            MAX_STEPS,
        ),
        ("{% for i in range(99999) %}" + "a" * 1000 + "{% endfor %}", MAX_SIZE),
        ("{% set x %}{% for i in range(99999) %}" + "a" * 1000 + "{% endfor %}{% endset %}", MAX_WORK),
    ],
)
def test_what_would_never_end_or_fit_is_stopped(source, bound):
    template = ChatTemplate(source, "", "")
    with pytest.raises(TemplateError, match=rf"\b{bound}\b"):
        template.render(MESSAGES)


@pytest.mark.parametrize("source", ["{% for x in messages recursive %}{{ loop(messages) }}{% endfor %}", "{% if %}"])
def test_what_does_not_compile(source):
    with pytest.raises(TemplateError, match="does not compile"):
        ChatTemplate(source, "", "")


def test_endless_recursion_is_a_template_error():
    with pytest.raises(TemplateError, match="recursion"):
        render("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}")


def test_the_source_is_bounded():
    assert ChatTemplate("é" * (MAX_TEMPLATE_BYTES // 2), "", "").render(MESSAGES)
    with pytest.raises(TemplateError, match=re.escape("65537 bytes")):
        ChatTemplate("é" * (MAX_TEMPLATE_BYTES // 2) + "a", "", "")


def test_each_render_has_the_full_budget():
    template = ChatTemplate("{% for i in range(99999) %}{% endfor %}{{ messages | length }}", "", "")
    assert [template.render(MESSAGES) for _ in range(3)] == ["2", "2", "2"]
    with pytest.raises(TemplateError, match="65"):
        ChatTemplate("{{ 'a' * 6500000 }}", "", "").render(MESSAGES)
    assert template.render(MESSAGES) == "2"


def test_the_longest_prompt_fits():
    template = ChatTemplate(
        "{% for m in messages %}{{ '<' + m.content.strip().split('</think>')[-1] + '>' }}{% endfor %}", "", ""
    )
    assert len(template.render([{"role": "user", "content": "x" * 2**20}])) == 2**20 + 2
