// Runs one kernel on given bytes and gives back what it left: the smallest path from a test to a WGSL file.
// Used in a page by `page.evaluate`; buffers travel as base64.

window.kernelBench = (() => {
  const decode = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const encode = (bytes) => {
    let text = "";
    for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
    return btoa(text);
  };
  const TYPES = { read: "read-only-storage", read_write: "storage", uniform: "uniform" };
  const SLOT_BYTES = 1024;
  let device;

  async function open() {
    let adapter = null;
    for (let i = 0; i < 10 && !adapter; i++) adapter = await navigator.gpu.requestAdapter();
    device = await adapter.requestDevice({ requiredFeatures: ["subgroups"].filter((name) => adapter.features.has(name)) });
    return { vendor: adapter.info.vendor, architecture: adapter.info.architecture };
  }

  function layoutOf(bindings) {
    return device.createBindGroupLayout({
      entries: bindings.map((buffer, binding) => ({ binding, visibility: GPUShaderStage.COMPUTE, buffer })),
    });
  }

  function bufferOf(bytes, usage) {
    const buffer = device.createBuffer({ size: bytes.length, usage: usage | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC });
    device.queue.writeBuffer(buffer, 0, bytes);
    return buffer;
  }

  /** @returns the bytes of every binding afterwards */
  async function run({ code, accesses, buffers, step, grid }) {
    device.pushErrorScope("validation");
    const layouts = [layoutOf(accesses.map((access) => ({ type: TYPES[access] })))];
    if (step) layouts.push(layoutOf([{ type: "uniform", hasDynamicOffset: true, minBindingSize: SLOT_BYTES }]));
    const pipeline = await device.createComputePipelineAsync({
      layout: device.createPipelineLayout({ bindGroupLayouts: layouts }),
      compute: { module: device.createShaderModule({ code }), entryPoint: "main" },
    });
    const made = buffers.map((text, i) =>
      bufferOf(decode(text), accesses[i] === "uniform" ? GPUBufferUsage.UNIFORM : GPUBufferUsage.STORAGE),
    );
    const group = (layout, list, size) =>
      device.createBindGroup({ layout, entries: list.map((buffer, binding) => ({ binding, resource: { buffer, size } })) });
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group(layouts[0], made));
    if (step) {
      // The second slot of a ring, so that a kernel that ignored the dynamic offset would read zeros.
      const words = new Uint8Array(2 * SLOT_BYTES);
      words.set(decode(step), SLOT_BYTES);
      pass.setBindGroup(1, group(layouts[1], [bufferOf(words, GPUBufferUsage.UNIFORM)], SLOT_BYTES), [SLOT_BYTES]);
    }
    pass.dispatchWorkgroups(...grid);
    pass.end();
    const copies = made.map((buffer) => {
      const copy = device.createBuffer({ size: buffer.size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
      encoder.copyBufferToBuffer(buffer, 0, copy, 0, buffer.size);
      return copy;
    });
    device.queue.submit([encoder.finish()]);
    const error = await device.popErrorScope();
    if (error) throw error;
    await Promise.all(copies.map((copy) => copy.mapAsync(GPUMapMode.READ)));
    const bytes = copies.map((copy) => encode(new Uint8Array(copy.getMappedRange())));
    for (const buffer of [...made, ...copies]) buffer.destroy();
    return bytes;
  }

  return { open, run };
})();
