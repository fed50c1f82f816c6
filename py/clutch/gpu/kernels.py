"""The registry of kernels: what each WGSL file binds and how it is specialised.

A kernel is one file of `wgsl/`, completed by others. An operation on weights (`qkv.wgsl`) says what becomes of a sum; a
product (`product_rows.wgsl`) brings `main` and the sums, a format (`format_q4_1.wgsl`) the weights, a source the
activations. So a new quantisation is one small file, not a copy of every operation. Constants stand before the text,
because they size arrays. The test `tests/unit/test_kernel_contracts.py` compares this table, the files' headers and
their declarations.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from clutch.gpu.weight_formats import FORMATS

READ, WRITE, UNIFORM = "read", "read_write", "uniform"

COMPLETIONS: dict[str, tuple[str, ...]] = {
    "product_rows": ("LANES", "PAIRS", "TOKENS", "WORKGROUP"),
    "product_thread": ("TOKENS", "WORKGROUP"),
    "product_tiles": ("TILE_ROWS", "TILE_TOKENS", "THREAD_ROWS", "SPLITS", "WORKGROUP"),
    "product_tiles_int8": ("TILE_ROWS", "TILE_TOKENS", "THREAD_ROWS", "SPLITS", "WORKGROUP"),
    "source_normed": ("EPS",),
}
"""The completions that ask for constants, and which."""

_NEED_SUBGROUPS = {"lanes_subgroup", "activations_int8", "attention_split"}


@dataclass(frozen=True)
class KernelSpec:
    """What a WGSL file asks of its caller.

    Args:
        name: file name without `.wgsl`.
        bindings: (name, access) of group 0 in binding order.
        constants: names of the constants, all required.
        completed_by: kinds of files that complete it: the first word of their names.
        workgroup_size: invocations of a workgroup, along x or all of them for one workgroup an item; 0 for the
            constant WORKGROUP.
    """

    name: str
    bindings: tuple[tuple[str, str], ...]
    constants: tuple[str, ...] = ()
    completed_by: tuple[str, ...] = ()
    workgroup_size: int = 64

    @property
    def has_step(self) -> bool:
        """Whether it reads the step uniform (group 1), which `step.wgsl` declares."""
        return "step" in self.completed_by


_WEIGHTS = (("quants", READ), ("scales", READ), ("x", READ))
_SLAB = ("ROWS", "COLUMNS", "FIRST_ROW")
_REPACK = (("raw", READ), ("quants", WRITE), ("scales", WRITE), ("rows", UNIFORM))
_HEADS = ("N_HEADS", "N_KV_HEADS", "HEAD_DIM")
_ATTENTION = (("q", READ), ("kv", READ), ("table", READ), ("pieces", WRITE))
_PRODUCT = ("product", "format")

KERNELS: dict[str, KernelSpec] = {
    spec.name: spec
    for spec in (
        KernelSpec(
            "embed",
            (("quants", READ), ("scales", READ), ("tokens", READ), ("x", WRITE)),
            ("ROWS", "FIRST_ROW", "HIDDEN"),
            ("format", "step"),
            workgroup_size=32,
        ),
        KernelSpec("rms_norm", (("x", READ), ("gain", READ), ("h", WRITE)), ("HIDDEN", "EPS"), ("step",)),
        KernelSpec(
            "qkv",
            (*_WEIGHTS, ("gain", READ), ("rope", READ), ("table", READ), ("q", WRITE), ("kv", WRITE)),
            (*_SLAB, *_HEADS),
            (*_PRODUCT, "keep", "step"),
            workgroup_size=0,
        ),
        KernelSpec("quantise", (("x", READ), ("quantised", WRITE)), ("COLUMNS",), ("step",), workgroup_size=32),
        KernelSpec(
            "kv_store_q8", (("fresh", READ), ("table", READ), ("kv", WRITE)), ("N_KV_HEADS", "HEAD_DIM"), ("step",)
        ),
        KernelSpec("attention_partial", _ATTENTION, (*_HEADS, "SPLITS"), ("kv", "step")),
        KernelSpec(
            "attention_split",
            _ATTENTION,
            (*_HEADS, "SPLITS", "LANES", "WORKGROUP"),
            ("kv", "step"),
            workgroup_size=0,
        ),
        KernelSpec(
            "attention_tile",
            (("q", READ), ("kv", READ), ("table", READ), ("attended", WRITE)),
            (*_HEADS, "TOKENS", "KEYS", "THREAD_ROWS", "WORKGROUP"),
            ("kv", "step"),
            workgroup_size=0,
        ),
        KernelSpec(
            "attention_merge",
            (("pieces", READ), ("attended", WRITE)),
            ("N_HEADS", "HEAD_DIM", "SPLITS", "WORKGROUP"),
            ("step",),
            workgroup_size=0,
        ),
        KernelSpec("matmul_add", (*_WEIGHTS, ("y", WRITE)), (*_SLAB, "WIDTH"), (*_PRODUCT, "step"), workgroup_size=0),
        KernelSpec(
            "gate_up",
            (*_WEIGHTS, ("gain", READ), ("y", WRITE)),
            (*_SLAB, "WIDTH"),
            (*_PRODUCT, "step"),
            workgroup_size=0,
        ),
        KernelSpec(
            "lm_head",
            (*_WEIGHTS, ("gain", READ), ("logits", WRITE), ("candidates", WRITE)),
            (*_SLAB, "VOCAB", "CANDIDATES", "FIRST_CANDIDATE"),
            (*_PRODUCT, "candidate", "step"),
            workgroup_size=0,
        ),
        KernelSpec(
            "sample",
            (("logits", READ), ("candidates", READ), ("tokens", WRITE), ("result", WRITE)),
            ("VOCAB", "CONTEXT", "CANDIDATES"),
            ("candidate", "step"),
            workgroup_size=256,
        ),
        *(
            KernelSpec(f"repack_{format.name}", _REPACK, completed_by=("rows",), workgroup_size=256)
            for format in FORMATS.values()
        ),
    )
}


@dataclass(frozen=True)
class Kernel:
    """One specialisation of a kernel: exactly one pipeline.

    Args:
        spec: the registry entry.
        constants: (name, value) pairs, every constant of the entry and of what completes it once.
        files: what completes it, in order.
    """

    spec: KernelSpec
    constants: tuple[tuple[str, int | float], ...] = ()
    files: tuple[str, ...] = ()

    @property
    def workgroup_size(self) -> int:
        """Invocations of a workgroup."""
        return self.spec.workgroup_size or int(dict(self.constants)["WORKGROUP"])

    @property
    def needs_subgroups(self) -> bool:
        """Whether it runs only where the GPU has subgroups."""
        return not _NEED_SUBGROUPS.isdisjoint((self.spec.name, *self.files))

    def source(self, wgsl_root: Path) -> str:
        """Return the WGSL text: constants, the operation, then what completes it; the same text every time, so that
        pipeline caches hit."""
        lines = ["enable subgroups;"] if self.needs_subgroups else []
        lines += [_declaration(name, value) for name, value in self.constants]
        lines += [(wgsl_root / f"{name}.wgsl").read_text("utf-8") for name in (self.spec.name, *self.files)]
        return "\n".join(lines)


def kernel(name: str, *files: str, **constants: int | float) -> Kernel:
    """Return the specialisation of kernel `name`, completed by `files` and by what every such kernel needs.

    Args:
        name: of the registry.
        files: what completes it, by choice: a format, a product...
        constants: of the kernel and of its completions, in any order; an int becomes a u32, a float an f32.
    """
    spec = KERNELS[name]
    every = [*files, *(kind for kind in ("candidate", "step", "rows") if kind in spec.completed_by)]
    if any(file.startswith("format_") and file != "format_f32" for file in files):
        every.append("blocks")
    assert set(spec.completed_by) <= {file.partition("_")[0] for file in every}, (name, files)
    wanted = [*spec.constants, *(constant for file in files for constant in COMPLETIONS.get(file, ()))]
    # What an operation and its completion both ask for, they share.
    pairs = tuple((key, constants[key]) for key in dict.fromkeys(wanted))
    assert len(pairs) == len(constants), (name, set(constants) ^ set(wanted))
    return Kernel(spec, pairs, tuple(every))


def texts_id(wgsl_root: Path) -> str:
    """Return a name for the texts of all kernels: another for every change."""
    digest = hashlib.sha256()
    for path in sorted(wgsl_root.glob("*.wgsl")):
        digest.update(f"{path.name}\0{path.read_text('utf-8')}\0".encode())
    return digest.hexdigest()


def _declaration(name: str, value: int | float) -> str:
    if isinstance(value, int):
        return f"const {name}: u32 = {value}u;"
    return f"const {name}: f32 = {value!r}f;"
