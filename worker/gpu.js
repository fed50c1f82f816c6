// @ts-check
/**
 * One GPU device with everything that must be waited for: allocation, compilation, readback. Knows WebGPU, knows no model.
 */

import { Guard } from "./wait.js";

const ALLOCATE_MS = 10_000;
const COMPILE_MS = 120_000;
const IDLE_MS = 60_000;

/**
 * @typedef {{vendor: string, architecture: string, description: string, is_fallback: boolean, subgroup_size: number}} Adapter
 * `subgroup_size`: lanes of the smallest subgroup, 0 without subgroups
 */

export class Gpu {
  #isClosed = false;
  /** Those that may still be refused. */
  #allocations = /** @type {{label: string, size: number, scopes: Promise<(GPUError | null)[]>}[]} */ ([]);

  /**
   * @param {GPUDevice} device
   * @param {Adapter} adapter which GPU it is
   */
  constructor(device, adapter) {
    this.device = device;
    this.adapter = adapter;
    this.queue = device.queue;
    this.guard = new Guard(device);
  }

  /**
   * Calls `callback` when the device is lost, unless it was destroyed from here.
   * @param {() => void} callback
   */
  onLost(callback) {
    this.device.lost.then(() => {
      if (!this.#isClosed) callback();
    });
  }

  /** Gives the device back. */
  close() {
    this.#isClosed = true;
    this.device.destroy();
  }

  /**
   * @param {GPUBuffer} buffer
   * @param {number} offset in bytes
   * @param {number} size in bytes
   */
  clear(buffer, offset, size) {
    const encoder = this.device.createCommandEncoder();
    encoder.clearBuffer(buffer, offset, size);
    this.queue.submit([encoder.finish()]);
  }

  /**
   * Copies between buffers, one move after the other.
   * @param {GPUBuffer[]} buffers two a move: from which to which other
   * @param {number[]} numbers three a move: where it begins in each, and how long it is, in bytes
   */
  copy(buffers, numbers) {
    const encoder = this.device.createCommandEncoder();
    for (let i = 0; 2 * i < buffers.length; i++) {
      const [from, to, size] = numbers.slice(3 * i, 3 * i + 3);
      encoder.copyBufferToBuffer(buffers[2 * i], from, buffers[2 * i + 1], to, size);
    }
    this.queue.submit([encoder.finish()]);
  }

  /**
   * Makes a buffer at once; `settle` says whether it fits.
   * @param {string} label
   * @param {number} size in bytes
   * @param {number} usage
   * @returns {GPUBuffer}
   */
  allocate(label, size, usage) {
    const { device } = this;
    device.pushErrorScope("out-of-memory");
    device.pushErrorScope("validation");
    const buffer = device.createBuffer({ label, size, usage });
    const scopes = Promise.all([device.popErrorScope(), device.popErrorScope()]);
    // Nobody may be waiting for it when it fails; whoever waits hears of it.
    scopes.catch(() => {});
    this.#allocations.push({ label, size, scopes });
    return buffer;
  }

  /**
   * Waits for all that was allocated since the last time: hundreds of buffers cost one wait. A buffer that does not fit
   * is no exception in WebGPU, only an error in a scope; one that is too large for a limit is a validation error.
   * @returns {Promise<{label: string, size: number, message: string} | undefined>} the first that was refused
   */
  async settle() {
    const allocations = this.#allocations;
    this.#allocations = [];
    const scopes = Promise.all(allocations.map((allocation) => allocation.scopes));
    const failures = await this.guard.wait(scopes, `allocating ${allocations.at(-1)?.label}`, ALLOCATE_MS);
    for (const [i, failed] of failures.entries()) {
      const failure = failed.find((error) => error !== null);
      if (failure) return { label: allocations[i].label, size: allocations[i].size, message: failure.message };
    }
    return undefined;
  }

  /**
   * @param {GPUComputePipelineDescriptor} descriptor
   * @returns {Promise<GPUComputePipeline>}
   */
  compile(descriptor) {
    return this.guard.wait(
      this.device.createComputePipelineAsync(descriptor),
      `compiling ${descriptor.label}`,
      COMPILE_MS,
    );
  }

  /**
   * Gathers pieces of buffers: the i-th begins at byte `offsets[i]` of `buffers[i]` and has `sizes[i]` bytes.
   * @param {GPUBuffer[]} buffers made for copying from
   * @param {number[]} offsets
   * @param {number[]} sizes
   * @param {GPUBuffer} via made for mapping, as large as all of them
   * @returns {Promise<Uint8Array>} one behind the other
   */
  async read(buffers, offsets, sizes, via) {
    const encoder = this.device.createCommandEncoder();
    let total = 0;
    buffers.forEach((buffer, i) => {
      encoder.copyBufferToBuffer(buffer, offsets[i], via, total, sizes[i]);
      total += sizes[i];
    });
    this.queue.submit([encoder.finish()]);
    await this.guard.wait(via.mapAsync(GPUMapMode.READ, 0, total), `reading ${buffers[0].label}`, IDLE_MS);
    const bytes = new Uint8Array(via.getMappedRange(0, total)).slice();
    via.unmap();
    return bytes;
  }

  /** @returns {Promise<undefined>} when everything submitted is done */
  idle() {
    return this.guard.wait(this.queue.onSubmittedWorkDone(), "the GPU's queue", IDLE_MS);
  }
}
