"""Pipelines and bind groups of a device: made while a model loads, looked up afterwards."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import js
from pyodide.ffi import JsException, to_js

from clutch.browser.failures import translated
from clutch.errors import InternalError
from clutch.gpu.device import Buffer
from clutch.gpu.kernels import READ, UNIFORM, WRITE, Kernel, KernelSpec
from clutch.gpu.step import SLOT_BYTES

_BINDING_TYPES = {READ: "read-only-storage", WRITE: "storage", UNIFORM: "uniform"}


def js_object(value: object) -> Any:
    """Return `value` with every dict turned into a plain JS object."""
    return to_js(value, dict_converter=js.Object.fromEntries)


def handle_of(owner: object) -> Any:
    """Return the JS object behind one of ours; a device only ever gets what it or this package made."""
    return owner.handle  # type: ignore[attr-defined]


class Pipelines:
    """Makes and keeps pipelines, layouts and bind groups.

    Args:
        gpu: the `Gpu` of `worker/gpu.js`.
        wgsl_root: folder of the kernels.
    """

    def __init__(self, gpu: Any, wgsl_root: Path) -> None:
        self._gpu = gpu
        self._device = gpu.device
        self._wgsl_root = wgsl_root
        self._pipelines: dict[Kernel, Any] = {}
        self._layouts: dict[str, Any] = {}
        self._groups: dict[tuple[object, ...], Any] = {}
        step = {"type": "uniform", "hasDynamicOffset": True, "minBindingSize": SLOT_BYTES}
        self._step_layout = self._layout([step])

    async def compile(self, kernels: Sequence[Kernel], on_progress: Callable[[int, int], None]) -> None:
        """Make the pipelines that `kernels` lack.

        Together they take a fifth of the time (measured, Chromium 156, NVIDIA).

        Raises:
            InternalError: a kernel does not compile; names it and gives the driver's text.
        """
        missing = [kernel for kernel in dict.fromkeys(kernels) if kernel not in self._pipelines]
        done = 0

        async def compile_one(kernel: Kernel) -> None:
            nonlocal done
            self._pipelines[kernel] = await self._compile(kernel)
            done += 1
            on_progress(done, len(missing))

        await asyncio.gather(*(compile_one(kernel) for kernel in missing))

    def pipeline(self, kernel: Kernel) -> Any:
        """Return a compiled pipeline."""
        return self._pipelines[kernel]

    def bind_group(self, spec: KernelSpec, buffers: Sequence[Buffer]) -> Any:
        """Return the bind group of `buffers` for `spec`, the same one for the same buffers."""
        assert len(buffers) == len(spec.bindings), spec
        key = (spec.name, *buffers)
        if key not in self._groups:
            entries = [{"binding": i, "resource": {"buffer": handle_of(b)}} for i, b in enumerate(buffers)]
            self._groups[key] = self._device.createBindGroup(
                js_object({"label": spec.name, "layout": self._spec_layout(spec), "entries": entries})
            )
        return self._groups[key]

    def step_group(self, uniforms: Buffer) -> Any:
        """Return the bind group that shows one slot of the step uniforms."""
        resource = {"buffer": handle_of(uniforms), "size": SLOT_BYTES}
        entries = [{"binding": 0, "resource": resource}]
        return self._device.createBindGroup(js_object({"layout": self._step_layout, "entries": entries}))

    async def _compile(self, kernel: Kernel) -> Any:
        spec = kernel.spec
        layouts = [self._spec_layout(spec)] + ([self._step_layout] if spec.has_step else [])
        layout = self._device.createPipelineLayout(js_object({"bindGroupLayouts": layouts}))
        module = self._device.createShaderModule(
            js_object({"label": spec.name, "code": kernel.source(self._wgsl_root)})
        )
        stage = {"module": module, "entryPoint": "main"}
        try:
            with translated():
                return await self._gpu.compile(js_object({"label": spec.name, "layout": layout, "compute": stage}))
        except JsException as error:
            raise InternalError(
                f"Kernel {spec.name} does not compile: {error}",
                hint="Report this with your GPU's name.",
                kernel=spec.name,
            ) from error

    def _spec_layout(self, spec: KernelSpec) -> Any:
        if spec.name not in self._layouts:
            self._layouts[spec.name] = self._layout([{"type": _BINDING_TYPES[access]} for _, access in spec.bindings])
        return self._layouts[spec.name]

    def _layout(self, bindings: Sequence[dict[str, object]]) -> Any:
        entries = [
            {"binding": i, "visibility": js.GPUShaderStage.COMPUTE, "buffer": binding}
            for i, binding in enumerate(bindings)
        ]
        return self._device.createBindGroupLayout(js_object({"entries": entries}))
