"""The registry of kernels: what each WGSL file binds and how it is specialised.

A kernel is one file of `wgsl/`, completed by others: an operation on weights by a weight format (`format_q4_1.wgsl`
brings `dequantise(block)`), one on keys and values by a KV format (`kv_q8.wgsl`), and whatever runs in a step by
`step.wgsl`. So a new quantisation is one small file, not a copy of every operation. The test
`tests/unit/test_kernel_contracts.py` compares this table, the files' headers and their declarations.
"""

from dataclasses import dataclass
from pathlib import Path

from clutch.errors import UnsupportedModelError
from clutch.formats.quants import QuantType

READ, WRITE, UNIFORM = "read", "read_write", "uniform"


@dataclass(frozen=True)
class KernelSpec:
    """What a WGSL file asks of its caller.

    Args:
        name: file name without `.wgsl`.
        bindings: (name, access) of group 0 in binding order.
        overrides: names of the pipeline constants, all required.
        workgroup_size: invocations of a workgroup; along x, or all of them for one workgroup an item.
        has_format: whether a weight format completes it.
        has_kv: whether a KV format completes it.
        has_step: whether it reads the step uniform (group 1), which `step.wgsl` declares.
    """

    name: str
    bindings: tuple[tuple[str, str], ...]
    overrides: tuple[str, ...] = ()
    workgroup_size: int = 64
    has_format: bool = False
    has_kv: bool = False
    has_step: bool = True


_WEIGHTS = (("quants", READ), ("scales", READ))
_REPACK = (("raw", READ), ("quants", WRITE), ("scales", WRITE), ("rows", UNIFORM))
_ATTENTION = ("N_HEADS", "N_KV_HEADS", "HEAD_DIM")

KERNELS: dict[str, KernelSpec] = {
    spec.name: spec
    for spec in (
        KernelSpec(
            "embed",
            (*_WEIGHTS, ("tokens", READ), ("x", WRITE)),
            ("HIDDEN",),
            workgroup_size=32,
            has_format=True,
        ),
        KernelSpec("rms_norm", (("x", READ), ("gain", READ), ("h", WRITE)), ("HIDDEN", "EPS")),
        KernelSpec(
            "qkv",
            (*_WEIGHTS, ("h", READ), ("rope", READ), ("table", READ), ("q", WRITE), ("kv", WRITE)),
            ("HIDDEN", *_ATTENTION, "TOKENS"),
            has_format=True,
            has_kv=True,
        ),
        KernelSpec(
            "attention_partial",
            (("q", READ), ("kv", READ), ("table", READ), ("sums", WRITE), ("norms", WRITE)),
            (*_ATTENTION, "SPLITS"),
            has_kv=True,
        ),
        KernelSpec(
            "attention_merge",
            (("sums", READ), ("norms", READ), ("attended", WRITE)),
            ("N_HEADS", "HEAD_DIM", "SPLITS"),
        ),
        KernelSpec(
            "matmul_add",
            (*_WEIGHTS, ("x", READ), ("y", WRITE)),
            ("ROWS", "COLUMNS", "TOKENS"),
            has_format=True,
        ),
        KernelSpec("gate_up", (*_WEIGHTS, ("h", READ), ("y", WRITE)), ("ROWS", "HIDDEN", "TOKENS"), has_format=True),
        KernelSpec("lm_head", (*_WEIGHTS, ("h", READ), ("logits", WRITE)), ("ROWS", "HIDDEN"), has_format=True),
        KernelSpec(
            "sample",
            (("logits", READ), ("tokens", WRITE), ("result", WRITE)),
            ("VOCAB", "CONTEXT"),
            workgroup_size=256,
        ),
        KernelSpec("repack_q4_1", _REPACK, has_step=False),
        KernelSpec("repack_q8_0", _REPACK, has_step=False),
        KernelSpec("repack_f32", _REPACK, has_step=False),
    )
}

# The matrix formats there is a `format_*.wgsl` and a `repack_*.wgsl` for.
FORMATS: dict[QuantType, str] = {QuantType.Q4_1: "q4_1", QuantType.Q8_0: "q8_0", QuantType.F32: "f32"}


def format_name(quant_type: QuantType) -> str:
    """Return the name of the weight format of `quant_type`.

    Raises:
        UnsupportedModelError: there is no kernel for it.
    """
    if quant_type not in FORMATS:
        known = ", ".join(sorted(t.name for t in FORMATS))
        raise UnsupportedModelError(
            f"There are no kernels for weights of type {quant_type.name}.",
            hint=f"Choose a file quantised as one of {known}.",
            quantisation=quant_type.name,
        )
    return FORMATS[quant_type]


@dataclass(frozen=True)
class Kernel:
    """One specialisation of a kernel: exactly one pipeline.

    Args:
        spec: the registry entry.
        constants: (override, value) pairs, every override of the entry once.
        format, kv: the weight format and the KV format that complete it, "" where none is needed.
    """

    spec: KernelSpec
    constants: tuple[tuple[str, float], ...] = ()
    format: str = ""
    kv: str = ""

    def __post_init__(self) -> None:
        assert tuple(name for name, _ in self.constants) == self.spec.overrides, self
        assert (bool(self.format), bool(self.kv)) == (self.spec.has_format, self.spec.has_kv), self

    def source(self, wgsl_root: Path) -> str:
        """Return the WGSL text: the operation, then what completes it; byte-stable, so that pipeline caches hit."""
        completions = {f"format_{self.format}": self.format, f"kv_{self.kv}": self.kv, "step": self.spec.has_step}
        names = [self.spec.name, *(name for name, is_needed in completions.items() if is_needed)]
        return "\n".join((wgsl_root / f"{name}.wgsl").read_text("utf-8") for name in names)


def kernel(name: str, format: str = "", kv: str = "", **constants: float) -> Kernel:
    """Return the specialisation of kernel `name`; constants may come in any order."""
    spec = KERNELS[name]
    return Kernel(spec, tuple((key, constants[key]) for key in spec.overrides), format, kv)
