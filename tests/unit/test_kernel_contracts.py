"""Every WGSL file's header, its declarations and the registry say the same; the step uniform has one layout."""

import re
from pathlib import Path

import pytest

from clutch.config import KV_FORMATS
from clutch.formats.quants import SUPPORTED
from clutch.gpu.kernels import FORMATS, KERNELS, UNIFORM, WRITE, Kernel, format_name
from clutch.gpu.step import HEADER_BYTES, HEADER_FIELDS, MAX_SEQUENCES, SEQUENCE_BYTES, SEQUENCE_FIELDS
from tests.support.kernel_reference import REFERENCES

WGSL = Path(__file__).parents[2] / "wgsl"
FORMAT_FILES = {path.stem for path in WGSL.glob("format_*.wgsl")}
KV_FILES = {path.stem for path in WGSL.glob("kv_*.wgsl")}
COMPLETIONS = FORMAT_FILES | KV_FILES | {"step"}
NAMES = sorted(path.stem for path in WGSL.glob("*.wgsl") if path.stem not in COMPLETIONS)


def text_of(name):
    return (WGSL / f"{name}.wgsl").read_text("utf-8")


def header_of(name):
    """Return the header's fields; a line without a field name continues the one before."""
    fields, last = {}, "title"
    for line in text_of(name).splitlines():
        if not line.startswith("//"):
            return fields
        match = re.match(r"// ([a-z]+) {2,}(.*)", line)
        if match:
            last, value = match[1], match[2]
        else:
            value = line[2:].strip()
        fields[last] = f"{fields.get(last, '')} {value}".strip()
    raise AssertionError("no code")


def declared_bindings(name):
    """Return (group, binding, access, name) of every declaration."""
    found = re.findall(r"@group\((\d)\) @binding\((\d+)\) var<(\w+)(?:, (\w+))?> (\w+):", text_of(name))
    return [(int(g), int(b), UNIFORM if space == "uniform" else access, n) for g, b, space, access, n in found]


def test_the_registry_lists_every_file():
    assert sorted(KERNELS) == NAMES
    assert {f"format_{name}" for name in FORMATS.values()} == FORMAT_FILES
    assert {f"repack_{name}" for name in FORMATS.values()} <= set(NAMES)
    assert {f"kv_{name}" for name in KV_FORMATS} == KV_FILES
    assert sorted(REFERENCES) == NAMES


def test_every_supported_quantisation_has_a_format():
    assert set(FORMATS) == SUPPORTED
    assert [format_name(quant) for quant in FORMATS] == list(FORMATS.values())


@pytest.mark.parametrize("name", NAMES)
def test_bindings(name):
    spec = KERNELS[name]
    in_header = [tuple(part.split()) for part in header_of(name)["bindings"].split(" | ")]
    assert in_header == [(str(i), binding, access) for i, (binding, access) in enumerate(spec.bindings)]
    assert declared_bindings(name) == [(0, i, access, binding) for i, (binding, access) in enumerate(spec.bindings)]
    assert any(access == WRITE for _, access in spec.bindings)


@pytest.mark.parametrize("name", NAMES)
def test_overrides(name):
    overrides = re.findall(r"^override (\w+): ", text_of(name), re.M)
    assert tuple(overrides) == KERNELS[name].overrides
    assert ", ".join(overrides) == header_of(name).get("overrides", "")


def struct_of(name, struct):
    """Return (attribute, field, type) of a struct; the attribute is "" where there is none."""
    found = re.search(rf"struct {struct} \{{\n(.*?)\n\}}", text_of(name), re.S)
    assert found is not None
    return re.findall(r"^  (?:@(\w+\(\d+\)) )?(\w+): (.+),$", found[1], re.M)


def test_step_uniform():
    """All fields have four bytes, so that the layout follows from their order and the attributes."""
    assert declared_bindings("step") == [(1, 0, UNIFORM, "step")]
    *header, sequences = struct_of("step", "Step")
    assert header == [("", name, kind) for name, kind in HEADER_FIELDS]
    assert sequences == (f"align({HEADER_BYTES})", "sequences", f"array<Sequence, {MAX_SEQUENCES}>")
    *fields, last = [("", name, kind) for name, kind in SEQUENCE_FIELDS]
    padded_bytes = SEQUENCE_BYTES - 4 * len(fields)
    assert struct_of("step", "Sequence") == [*fields, (f"size({padded_bytes})", *last[1:])]


@pytest.mark.parametrize("name", NAMES)
def test_workgroup_size_completions_and_reference(name):
    spec, text, header = KERNELS[name], text_of(name), header_of(name)
    (size,) = re.findall(r"@workgroup_size\((\d+)\)\nfn main\(", text)
    assert int(size) == spec.workgroup_size
    assert ("dequantise(" in text) == spec.has_format == ("a weight format" in header["needs"])
    assert ("head_words(" in text) == spec.has_kv == ("a KV format" in header["needs"])
    assert ("step." in text) == spec.has_step
    assert f"tests/support/kernel_reference.py: {name};" in header["reference"]
    assert {"title", "shapes", "bindings", "dispatch", "needs", "reference"} <= set(header)
    assert header["title"].startswith(f"{name}.wgsl: ")


PROVIDED = {
    "format": ["fn dequantise(block: u32) -> array<vec4f, 8> {"],
    "kv": [
        "fn head_words() -> u32 {",
        "fn encoded(lane: u32, pair: vec2f) -> u32 {",
        "fn scale_at(head: u32) -> f32 {",
        "fn four_at(head: u32, i: u32) -> vec4f {",
    ],
    "step": ["fn sequence_of(token: u32) -> u32 {", "fn position_of(token: u32) -> u32 {"],
}


@pytest.mark.parametrize("name", sorted(COMPLETIONS))
def test_a_completion_provides_functions_and_no_kernel(name):
    text, header = text_of(name), header_of(name)
    assert header["title"].startswith(f"{name}.wgsl: ")
    assert {"layout", "provides"} <= set(header)
    for function in PROVIDED[name.partition("_")[0]]:
        assert function in text
        assert re.sub(r": \w+", "", function).removeprefix("fn ").partition(" ->")[0] in header["provides"]
    assert "@compute" not in text
    assert ("@group" in text) == (name == "step")


@pytest.mark.parametrize("kv", KV_FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_source_is_the_operation_and_what_completes_it(name, kv):
    spec = KERNELS[name]
    constants = tuple((override, 1.0) for override in spec.overrides)
    source = Kernel(spec, constants, "q8_0" if spec.has_format else "", kv if spec.has_kv else "").source(WGSL)
    assert source.startswith(text_of(name))
    assert source.count("fn dequantise") == int(spec.has_format)
    assert source.count("fn encoded") == int(spec.has_kv)
    assert source.count("struct Step ") == int(spec.has_step)
    assert max(map(len, source.splitlines())) <= 120
