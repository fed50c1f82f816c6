// @ts-check
/**
 * Replays recorded steps: one call encodes and submits a whole step, so that Python pays one FFI call for hundreds of
 * dispatches (30 us each from Python, 0.3 us from here). Knows WebGPU, knows no model; creates no buffer, bind group
 * or pipeline.
 */

const SLOT_BYTES = 256;
const RESULT_BYTES = 16;
const DEADLINE_MS = 60_000;

/** A recorded list of dispatches. */
export class Plan {
  /**
   * @param {GPUComputePipeline[]} pipelines one a dispatch
   * @param {GPUBindGroup[]} groups one a dispatch
   * @param {Int32Array} grid two numbers a dispatch: workgroups along x; tokens a workgroup along y takes, 0 for y = 1
   */
  constructor(pipelines, groups, grid) {
    this.pipelines = pipelines;
    this.groups = groups;
    this.grid = grid;
  }
}

/** Submits plans step after step. */
export class Replay {
  #device;
  #guard;
  #uniforms;
  #stepGroup;
  #result;
  #readbacks;
  #isFallback;
  /** The step uniform as words: 0 position, 1 tokens, then what `configure` sets. */
  #words = new Uint32Array(SLOT_BYTES / 4);
  #steps = 0;

  /**
   * @param {import("./gpu.js").Gpu} gpu
   * @param {GPUBuffer} uniforms a ring of slots of 256 bytes, one more than readbacks
   * @param {GPUBindGroup} stepGroup shows one slot of `uniforms`, by dynamic offset
   * @param {GPUBuffer} result 16 bytes that a step leaves behind
   * @param {GPUBuffer[]} readbacks one a step in flight
   */
  constructor(gpu, uniforms, stepGroup, result, readbacks) {
    this.#device = gpu.device;
    this.#guard = gpu.guard;
    this.#uniforms = uniforms;
    this.#stepGroup = stepGroup;
    this.#result = result;
    this.#readbacks = readbacks;
    this.#isFallback = gpu.adapter.is_fallback;
  }

  /** @param {Uint8Array} settings the words behind position and tokens */
  configure(settings) {
    new Uint8Array(this.#words.buffer).set(settings, 8);
  }

  /**
   * Submits a step at once.
   * @param {Plan} plan
   * @param {number} position of its first token
   * @param {number} nTokens
   * @returns {Promise<Uint32Array>} the four words of its result
   */
  step(plan, position, nTokens) {
    const device = this.#device;
    const slot = (this.#steps % (this.#readbacks.length + 1)) * SLOT_BYTES;
    const readback = this.#readbacks[this.#steps % this.#readbacks.length];
    this.#steps += 1;
    this.#words[0] = position;
    this.#words[1] = nTokens;
    device.queue.writeBuffer(this.#uniforms, slot, this.#words);

    const encoder = device.createCommandEncoder();
    encode(encoder, plan, nTokens, this.#stepGroup, slot);
    encoder.copyBufferToBuffer(this.#result, 0, readback, 0, RESULT_BYTES);
    device.queue.submit([encoder.finish()]);
    return this.#read(readback);
  }

  /**
   * @param {GPUBuffer} readback
   * @returns {Promise<Uint32Array>}
   */
  async #read(readback) {
    const mapped = readback.mapAsync(GPUMapMode.READ);
    await this.#guard.wait(this.#isFallback ? mapped : noticed(this.#device, mapped), "a step", DEADLINE_MS);
    const words = new Uint32Array(readback.getMappedRange()).slice();
    readback.unmap();
    return words;
  }
}

/**
 * Submits a plan that needs no step and leaves no result.
 * @param {GPUDevice} device
 * @param {Plan} plan
 */
export function run(device, plan) {
  const encoder = device.createCommandEncoder();
  encode(encoder, plan, 1, null, 0);
  device.queue.submit([encoder.finish()]);
}

/**
 * @param {GPUCommandEncoder} encoder
 * @param {Plan} plan
 * @param {number} nTokens
 * @param {GPUBindGroup | null} stepGroup
 * @param {number} slot
 */
function encode(encoder, plan, nTokens, stepGroup, slot) {
  const pass = encoder.beginComputePass();
  const { pipelines, groups, grid } = plan;
  if (stepGroup) pass.setBindGroup(1, stepGroup, [slot]);
  for (let i = 0; i < pipelines.length; i++) {
    pass.setPipeline(pipelines[i]);
    pass.setBindGroup(0, groups[i]);
    const tokensPerWorkgroup = grid[2 * i + 1];
    pass.dispatchWorkgroups(grid[2 * i], tokensPerWorkgroup ? Math.ceil(nTokens / tokensPerWorkgroup) : 1);
  }
  pass.end();
}

/**
 * Chromium notices finished work up to 2.5 ms late unless something asks its GPU process (measured, Chromium 156): an
 * error scope asks. Delete when a plain mapAsync of 0.5 ms of work takes less than 1 ms.
 * @template T
 * @param {GPUDevice} device
 * @param {Promise<T>} mapped
 * @returns {Promise<T>}
 */
async function noticed(device, mapped) {
  const pending = Symbol();
  for (;;) {
    device.pushErrorScope("validation");
    const first = await Promise.race([mapped, device.popErrorScope().then(() => pending)]);
    if (first !== pending) return mapped;
  }
}
