"""Every WGSL file's header, its declarations and the registry say the same; the step uniform has one layout."""

import re
from pathlib import Path

import pytest

from clutch.config import KV_FORMATS
from clutch.errors import UnsupportedModelError
from clutch.formats.quants import SUPPORTED, QuantType
from clutch.gpu.kernels import COMPLETIONS, KERNELS, UNIFORM, WRITE, kernel
from clutch.gpu.step import HEADER_BYTES, HEADER_FIELDS, MAX_SEQUENCES, SEQUENCE_BYTES, SEQUENCE_FIELDS
from clutch.gpu.weight_formats import FORMATS, format_of
from tests.support.kernel_reference import REFERENCES

WGSL = Path(__file__).parents[2] / "wgsl"
FILES = sorted(path.stem for path in WGSL.glob("*.wgsl"))
# A file that brings functions to other files, and no binding but what these say.
KINDS = {
    "format": {},
    "blocks": {},
    "source": {(0, 2, "read", "x")},
    "activations": {},
    "lanes": {},
    "product": {},
    "product_tiles": {(0, 2, "read", "x")},
    "product_tiles_int8": {(0, 2, "read", "x")},
    "keep": {},
    "kv": {},
    "candidate": {},
    "step": {(1, 0, UNIFORM, "step")},
    "rows": {},
}


def kind_of(name):
    return name.partition("_")[0]


COMPLETING = [name for name in FILES if kind_of(name) in KINDS and name not in KERNELS]
NAMES = [name for name in FILES if name not in COMPLETING]


def files_of(kind):
    return {name for name in COMPLETING if kind_of(name) == kind}


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
    assert {f"format_{layout.name}" for layout in FORMATS.values()} == files_of("format")
    assert {f"repack_{layout.name}" for layout in FORMATS.values()} == {n for n in NAMES if n.startswith("repack_")}
    assert {f"kv_{name}" for name in KV_FORMATS} == files_of("kv")
    assert set(COMPLETIONS) <= set(COMPLETING)
    assert sorted(REFERENCES) == NAMES


def test_every_supported_quantisation_has_a_format():
    assert set(FORMATS) == SUPPORTED
    for quant, layout in FORMATS.items():
        assert layout == format_of(quant)
        # A layout of our own costs a little more than the file's, never much.
        size_bytes = layout.quants_bytes + layout.scales_bytes
        assert quant.block_bytes <= size_bytes <= 1.1 * quant.block_bytes
    with pytest.raises(UnsupportedModelError, match="of type Q2_K"):
        format_of(QuantType.Q2_K)


@pytest.mark.parametrize("name", NAMES)
def test_bindings(name):
    spec = KERNELS[name]
    in_header = [tuple(part.split()) for part in header_of(name)["bindings"].split(" | ")]
    assert in_header == [(str(i), binding, access) for i, (binding, access) in enumerate(spec.bindings)]
    by_others = {
        binding
        for kind in ("source" if one == "product" else one for one in spec.completed_by if one != "step")
        for binding in KINDS[kind]
    }
    declared = sorted({*declared_bindings(name), *by_others})
    assert declared == [(0, i, access, binding) for i, (binding, access) in enumerate(spec.bindings)]
    assert any(access == WRITE for _, access in spec.bindings)


def completed_by(name):
    return KERNELS[name].completed_by if name in KERNELS else ()


@pytest.mark.parametrize("name", FILES)
def test_constants(name):
    """The header names what the text, or the product that it leaves the sums to, uses and does not declare."""
    constants = KERNELS[name].constants if name in KERNELS else COMPLETIONS.get(name, ())
    assert ", ".join(constants) == header_of(name).get("constants", "")
    texts = [text_of(name), text_of("product_rows") if "product" in completed_by(name) else ""]
    code = "\n".join(line.partition("//")[0] for text in texts for line in text.splitlines())
    for constant in constants:
        assert re.search(rf"\b{constant}\b", code)
        assert not re.search(rf"^\s*(const|override) {constant}\b", code, re.M)


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


WHAT_A_KIND_IS_CALLED_FOR = {
    "format": r"\bdequantise\(|\bfn finish\(",
    "product": r"\bfn finish\(",
    "keep": r"\bkeep\(",
    "kv": r"\beight_at\(",
    "candidate": r"\bCandidate\b",
    "step": r"\bstep\.|\bposition_of\(",
    "rows": r"\bfn repack\(",
}


@pytest.mark.parametrize("name", NAMES)
def test_workgroup_size_completions_and_reference(name):
    spec, text, header = KERNELS[name], text_of(name), header_of(name)
    sizes = re.findall(r"@workgroup_size\((\w+)\)\nfn main\(", text)
    has_main_elsewhere = {"product", "rows"} & set(spec.completed_by)
    assert sizes == ([] if has_main_elsewhere else [str(spec.workgroup_size or "WORKGROUP")])
    for kind, used in WHAT_A_KIND_IS_CALLED_FOR.items():
        assert bool(re.search(used, text)) == (kind in spec.completed_by), kind
    for kind, need in (
        ("product", "a product"),
        ("format", "a weight format"),
        ("kv", "a KV format"),
        ("rows", "rows.wgsl"),
    ):
        assert (need in header["needs"]) == (kind in spec.completed_by), kind
    assert re.search(rf"tests/support/(kernel|format)_reference\.py: {name};", header["reference"])
    assert {"title", "shapes", "bindings", "dispatch", "needs", "reference"} <= set(header)
    assert header["title"].startswith(f"{name}.wgsl: ")


PROVIDED = {
    "format_f32": ["fn dequantise(block: u32) -> array<vec4f, 8> {"],
    "format": ["const HAS_MIN", "fn block_at(block: u32) -> Block {"],
    "blocks": ["struct Block {", "fn dequantise(block: u32) -> array<vec4f, 8> {"],
    "source": [
        "fn value_at(item: u32, i: u32) -> vec4f {",
        "fn gained(i: u32, value: vec4f) -> vec4f {",
        "fn keep_squares(thread: u32, t: u32, sum: f32) {",
        "fn scale_of(t: u32) -> f32 {",
    ],
    "activations": [
        "alias Weights = ",
        "fn prepare(thread: u32, first_item: u32) {",
        "fn weights_at(block: u32) -> Weights {",
        "fn product(weights: Weights, first_item: u32, t: u32, block: u32) -> f32 {",
    ],
    "lanes": ["fn lanes_sum(thread: u32, mine: vec2f) -> vec2f {"],
    "product": ["fn main("],
    "keep": ["fn keep(item: u32, half: u32, head: u32, i: u32, y: vec2f) {"],
    "kv": [
        "fn head_words() -> u32 {",
        "fn scale_at(head: u32) -> f32 {",
        "fn eight_at(head: u32, i: u32) -> array<vec4f, 2> {",
    ],
    "candidate": ["struct Candidate {", "fn joined(a: Candidate, b: Candidate) -> Candidate {"],
    "rows": ["fn main(", "fn word_at(half_word: u32) -> u32 {"],
    "step": ["fn sequence_of(token: u32) -> u32 {", "fn position_of(token: u32) -> u32 {"],
}


@pytest.mark.parametrize("name", COMPLETING)
def test_a_completion_provides_what_its_kind_promises(name):
    text, header = text_of(name), header_of(name)
    assert header["title"].startswith(f"{name}.wgsl: ")
    assert "provides" in header
    for provided in PROVIDED.get(name) or PROVIDED[kind_of(name)]:
        assert provided in text
    assert ("@compute" in text) == (kind_of(name) in ("product", "rows"))
    assert set(declared_bindings(name)) == set(KINDS.get(name, KINDS[kind_of(name)]))


CHOICES = ["product_rows", "format_q8_0", "keep_f16", "kv_q8"]
OF_A_PRODUCT = ["source_normed", "activations_int8", "lanes_subgroup"]


@pytest.mark.parametrize("name", NAMES)
def test_source_is_constants_then_the_operation_then_what_completes_it(name):
    spec = KERNELS[name]
    files = [file for file in CHOICES if kind_of(file) in spec.completed_by]
    if "product" in spec.completed_by:
        files += OF_A_PRODUCT
    wanted = [*spec.constants, *(constant for file in files for constant in COMPLETIONS.get(file, ()))]
    constants = {constant: 0.5 if constant == "EPS" else 1 for constant in wanted}
    made = kernel(name, *files, **constants)
    source = made.source(WGSL)
    lines = ["enable subgroups;"] if made.needs_subgroups else []
    lines += [f"const {key}: {'f32 = 0.5f' if key == 'EPS' else 'u32 = 1u'};" for key in constants]
    assert source.startswith("\n".join([*lines, text_of(name)]))
    assert [source.count(text_of(file)) for file in made.files] == [1] * len(made.files)
    assert set(spec.completed_by) <= {kind_of(file) for file in made.files}
    assert max(map(len, source.splitlines())) <= 120
