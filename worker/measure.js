// @ts-check
/**
 * How long the GPU itself works, by timestamps around a pass; without them, how long until the browser knows that it is
 * done. Knows WebGPU, knows no model.
 *
 * Plain Chromium rounds timestamps to 65.5 us, so a pass should take some milliseconds. A GPU that was idle runs at a
 * fraction of its clock (345 to 900 of 1980 MHz on an H200), so the same pass goes before, and is not counted.
 */

import { noticed } from "./wait.js";

const DEADLINE_MS = 60_000;
const BYTES = 16;

/**
 * @param {import("./gpu.js").Gpu} gpu made with the feature "timestamp-query", if it can be had
 * @param {(pass: GPUComputePassEncoder) => void} encode what is measured; called twice
 * @returns {Promise<number>} microseconds
 */
export async function timed(gpu, encode) {
  const { device } = gpu;
  if (!device.features.has("timestamp-query")) return timedFromOutside(gpu, encode);
  const querySet = device.createQuerySet({ type: "timestamp", count: 2 });
  const resolved = device.createBuffer({ size: BYTES, usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC });
  const readback = device.createBuffer({ size: BYTES, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  try {
    const encoder = device.createCommandEncoder();
    if (!gpu.adapter.is_fallback) {
      const warm = encoder.beginComputePass();
      encode(warm);
      warm.end();
    }
    const timestampWrites = { querySet, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 };
    const pass = encoder.beginComputePass({ timestampWrites });
    encode(pass);
    pass.end();
    encoder.resolveQuerySet(querySet, 0, 2, resolved, 0);
    encoder.copyBufferToBuffer(resolved, 0, readback, 0, BYTES);
    device.queue.submit([encoder.finish()]);
    await gpu.guard.wait(readback.mapAsync(GPUMapMode.READ), "a measurement", DEADLINE_MS);
    const [begin, end] = new BigUint64Array(readback.getMappedRange());
    return Number(end - begin) / 1000;
  } finally {
    readback.destroy();
    resolved.destroy();
    querySet.destroy();
  }
}

/**
 * @param {import("./gpu.js").Gpu} gpu
 * @param {(pass: GPUComputePassEncoder) => void} encode
 * @returns {Promise<number>} microseconds
 */
async function timedFromOutside(gpu, encode) {
  const { device } = gpu;
  let begin = 0;
  for (let run = 0; run < 2; run++) {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    encode(pass);
    pass.end();
    begin = performance.now();
    device.queue.submit([encoder.finish()]);
    const done = device.queue.onSubmittedWorkDone();
    if (!gpu.adapter.is_fallback) noticed(device, done, Promise.resolve());
    await gpu.guard.wait(done, "a measurement", DEADLINE_MS);
  }
  return (performance.now() - begin) * 1000;
}
