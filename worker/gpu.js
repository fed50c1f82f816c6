// @ts-check
/**
 * One GPU device with everything that must be waited for: allocation, compilation, readback. Knows WebGPU, knows no model.
 */

import { Guard, named } from "./wait.js";

const ALLOCATE_MS = 10_000;
const COMPILE_MS = 120_000;
const IDLE_MS = 60_000;

export class Gpu {
  #isClosed = false;

  /**
   * @param {GPUDevice} device
   * @param {{vendor: string, architecture: string, description: string, is_fallback: boolean}} adapter which GPU it is
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

  /** @param {GPUBuffer} buffer */
  clear(buffer) {
    const encoder = this.device.createCommandEncoder();
    encoder.clearBuffer(buffer);
    this.queue.submit([encoder.finish()]);
  }

  /**
   * Makes a buffer. A buffer that does not fit is no exception in WebGPU, only an error in a scope; one that is too
   * large for a limit is a validation error.
   * @param {string} label
   * @param {number} size in bytes
   * @param {number} usage
   * @returns {Promise<GPUBuffer>}
   */
  async allocate(label, size, usage) {
    const { device } = this;
    device.pushErrorScope("out-of-memory");
    device.pushErrorScope("validation");
    const buffer = device.createBuffer({ label, size, usage });
    const scopes = Promise.all([device.popErrorScope(), device.popErrorScope()]);
    const failures = await this.guard.wait(scopes, `allocating ${label}`, ALLOCATE_MS);
    const failure = failures.find((error) => error !== null);
    if (failure) {
      buffer.destroy();
      throw named("OutOfMemory", failure.message);
    }
    return buffer;
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
   * @param {GPUBuffer} buffer made for copying from
   * @param {GPUBuffer} via made for mapping
   * @param {number} size in bytes, from the beginning
   * @returns {Promise<Uint8Array>}
   */
  async read(buffer, via, size) {
    const encoder = this.device.createCommandEncoder();
    encoder.copyBufferToBuffer(buffer, 0, via, 0, size);
    this.queue.submit([encoder.finish()]);
    await this.guard.wait(via.mapAsync(GPUMapMode.READ, 0, size), `reading ${buffer.label}`, IDLE_MS);
    const bytes = new Uint8Array(via.getMappedRange(0, size)).slice();
    via.unmap();
    return bytes;
  }

  /** @returns {Promise<undefined>} when everything submitted is done */
  idle() {
    return this.guard.wait(this.queue.onSubmittedWorkDone(), "the GPU's queue", IDLE_MS);
  }
}
