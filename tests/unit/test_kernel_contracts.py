"""Every WGSL file's header, its declarations and the registry say the same; the step uniform has one layout."""

import re
from pathlib import Path

import pytest

from clutch.formats.quants import SUPPORTED
from clutch.gpu.kernels import FORMATS, KERNELS, UNIFORM, WRITE, Kernel, format_name
from clutch.gpu.step import FIELDS
from tests.support.kernel_reference import REFERENCES

WGSL = Path(__file__).parents[2] / "wgsl"
FORMAT_FILES = {path.stem for path in WGSL.glob("format_*.wgsl")}
NAMES = sorted(path.stem for path in WGSL.glob("*.wgsl") if path.stem not in FORMAT_FILES)


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
    assert sorted(REFERENCES) == NAMES


def test_every_supported_quantisation_has_a_format():
    assert set(FORMATS) == SUPPORTED
    assert [format_name(quant) for quant in FORMATS] == list(FORMATS.values())


@pytest.mark.parametrize("name", NAMES)
def test_bindings(name):
    spec = KERNELS[name]
    in_header = [tuple(part.split()) for part in header_of(name)["bindings"].split(" | ")]
    assert in_header == [(str(i), binding, access) for i, (binding, access) in enumerate(spec.bindings)]
    declared = [(b, access, n) for group, b, access, n in declared_bindings(name) if group == 0]
    assert declared == [(i, access, binding) for i, (binding, access) in enumerate(spec.bindings)]
    assert any(access == WRITE for _, access in spec.bindings)


@pytest.mark.parametrize("name", NAMES)
def test_overrides(name):
    overrides = re.findall(r"^override (\w+): ", text_of(name), re.M)
    assert tuple(overrides) == KERNELS[name].overrides
    assert ", ".join(overrides) == header_of(name).get("overrides", "")


@pytest.mark.parametrize("name", NAMES)
def test_step_uniform(name):
    step = [n for group, b, access, n in declared_bindings(name) if (group, b, access) == (1, 0, UNIFORM)]
    assert step == (["step"] if KERNELS[name].has_step else [])
    if step:
        struct = re.search(r"struct Step \{\n(.*?)\n\}", text_of(name), re.S)
        assert struct is not None
        assert tuple(re.findall(r"(\w+): (\w+),", struct[1])) == FIELDS


@pytest.mark.parametrize("name", NAMES)
def test_workgroup_size_format_and_reference(name):
    spec, text, header = KERNELS[name], text_of(name), header_of(name)
    (size,) = re.findall(r"@workgroup_size\((\d+)\)\nfn main\(", text)
    assert int(size) == spec.workgroup_size
    assert ("dequantise(" in text) == spec.has_format == ("a weight format" in header["needs"])
    assert f"tests/support/kernel_reference.py: {name};" in header["reference"]
    assert {"title", "shapes", "bindings", "dispatch", "needs", "reference"} <= set(header)
    assert header["title"].startswith(f"{name}.wgsl: ")


@pytest.mark.parametrize("name", sorted(FORMAT_FILES))
def test_formats_only_provide_dequantise(name):
    text = text_of(name)
    assert "fn dequantise(block: u32) -> array<vec4f, 8> {" in text
    assert "@group" not in text
    assert "@compute" not in text


@pytest.mark.parametrize("name", NAMES)
def test_source_is_the_operation_and_its_format(name):
    spec = KERNELS[name]
    constants = tuple((override, 1.0) for override in spec.overrides)
    source = Kernel(spec, constants, "q8_0" if spec.has_format else "").source(WGSL)
    assert source.startswith(text_of(name))
    assert source.count("fn dequantise") == int(spec.has_format)
    assert max(map(len, source.splitlines())) <= 120
