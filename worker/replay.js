// @ts-check
/**
 * Replays recorded steps: one call encodes and submits a whole step, so that Python pays one FFI call for hundreds of
 * dispatches (30 us each from Python, 0.3 us from here). Knows WebGPU, knows no model; creates no buffer, bind group
 * or pipeline.
 */

import { timed } from "./measure.js";
import { noticed } from "./wait.js";

// The layout of clutch/gpu/step.py.
const SLOT_BYTES = 1024;
const HEADER_BYTES = 16;
const SEQUENCE_BYTES = 48;
const MAX_SEQUENCES = 16;
const RESULT_BYTES = 16;

const HEADER_WORDS = HEADER_BYTES / 4;
const SEQUENCE_WORDS = SEQUENCE_BYTES / 4;
const DEADLINE_MS = 60_000;

/** A recorded list of dispatches. */
export class Plan {
  /**
   * @param {GPUComputePipeline[]} pipelines one a dispatch
   * @param {GPUBindGroup[]} groups one a dispatch
   * @param {Int32Array} grid two numbers a dispatch: workgroups along x; tokens that a workgroup along y takes, 0 when it
   *   takes a sequence
   */
  constructor(pipelines, groups, grid) {
    this.pipelines = pipelines;
    this.groups = groups;
    this.grid = grid;
  }

  /**
   * @param {number} i
   * @returns {Plan} its i-th dispatch alone
   */
  only(i) {
    return new Plan([this.pipelines[i]], [this.groups[i]], this.grid.subarray(2 * i, 2 * i + 2));
  }
}

/** Submits plans step after step. */
export class Replay {
  #gpu;
  #device;
  #guard;
  #uniforms;
  #stepGroup;
  #result;
  #readbacks;
  #settle;
  #isFallback;
  /** Until the steps in flight have been asked for. */
  #asked = /** @type {Promise<void>} */ (Promise.resolve());
  /** What `configure` sets, a sequence a slot, as in the step uniform; the word of the position is not used. */
  #settings = new Uint32Array(MAX_SEQUENCES * SEQUENCE_WORDS);
  /** The step uniform: tokens, tokens of a sequence, padding, then the sequences of the step. */
  #words = new Uint32Array(HEADER_WORDS + MAX_SEQUENCES * SEQUENCE_WORDS);
  #steps = 0;

  /**
   * @param {import("./gpu.js").Gpu} gpu
   * @param {GPUBuffer} uniforms a ring of slots of SLOT_BYTES, one more than readbacks
   * @param {GPUBindGroup} stepGroup shows one slot of `uniforms`, by dynamic offset
   * @param {GPUBuffer} result 16 bytes a sequence that a step leaves behind
   * @param {GPUBuffer[]} readbacks one a step in flight
   * @param {(step: number, words?: Uint32Array, error?: Error) => void} settle called when a step has ended, with its
   *   number and four words of result a sequence, or with why there are none
   */
  constructor(gpu, uniforms, stepGroup, result, readbacks, settle) {
    this.#gpu = gpu;
    this.#device = gpu.device;
    this.#guard = gpu.guard;
    this.#uniforms = uniforms;
    this.#stepGroup = stepGroup;
    this.#result = result;
    this.#readbacks = readbacks;
    this.#settle = settle;
    this.#isFallback = gpu.adapter.is_fallback;
  }

  /**
   * @param {number} slot of the sequence
   * @param {Uint8Array} settings its words behind the position
   */
  configure(slot, settings) {
    new Uint8Array(this.#settings.buffer).set(settings, slot * SEQUENCE_BYTES + 4);
  }

  /**
   * Submits a step at once.
   * @param {Plan} plan
   * @param {number} tokensPerSequence
   * @param {number[]} sequences two numbers each: its slot, and the position of its first token
   * @returns {number} the step's, for `settle`
   */
  step(plan, tokensPerSequence, ...sequences) {
    const device = this.#device;
    const nSequences = sequences.length / 2;
    const readback = this.#readbacks[this.#steps % this.#readbacks.length];
    const offset = this.#begin(sequences, tokensPerSequence);

    const encoder = device.createCommandEncoder();
    encode(encoder, plan, nSequences, tokensPerSequence, this.#stepGroup, offset);
    encoder.copyBufferToBuffer(this.#result, 0, readback, 0, nSequences * RESULT_BYTES);
    device.queue.submit([encoder.finish()]);
    const step = this.#steps;
    this.#read(readback, nSequences * RESULT_BYTES).then(
      (words) => this.#settle(step, words),
      (error) => this.#settle(step, undefined, error),
    );
    return step;
  }

  /**
   * GPU time of a plan that runs `repeats` times in one pass; its results are not read. See `measure.js`.
   * @param {Plan} plan
   * @param {number} repeats
   * @param {number} tokensPerSequence
   * @param {number[]} sequences as for `step`
   * @returns {Promise<number>} microseconds
   */
  measure(plan, repeats, tokensPerSequence, ...sequences) {
    const offset = this.#begin(sequences, tokensPerSequence);
    return timed(this.#gpu, (pass) => {
      pass.setBindGroup(1, this.#stepGroup, [offset]);
      for (let i = 0; i < repeats; i++) dispatch(pass, plan, sequences.length / 2, tokensPerSequence);
    });
  }

  /**
   * Writes the uniform of the next step into the next slot.
   * @param {number[]} sequences
   * @param {number} tokensPerSequence
   * @returns {number} the slot's offset in the uniforms
   */
  #begin(sequences, tokensPerSequence) {
    const offset = (this.#steps % (this.#readbacks.length + 1)) * SLOT_BYTES;
    this.#steps += 1;
    const nWords = this.#fill(sequences, tokensPerSequence);
    this.#device.queue.writeBuffer(this.#uniforms, offset, this.#words, 0, nWords);
    return offset;
  }

  /**
   * Fills the words of the step uniform.
   * @param {number[]} sequences
   * @param {number} tokensPerSequence
   * @returns {number} how many of its words this step needs
   */
  #fill(sequences, tokensPerSequence) {
    const words = this.#words;
    words[0] = (sequences.length / 2) * tokensPerSequence;
    words[1] = tokensPerSequence;
    let at = HEADER_WORDS;
    for (let i = 0; i < sequences.length; i += 2) {
      const first = sequences[i] * SEQUENCE_WORDS;
      words[at] = sequences[i + 1];
      for (let j = 1; j < SEQUENCE_WORDS; j++) words[at + j] = this.#settings[first + j];
      at += SEQUENCE_WORDS;
    }
    return at;
  }

  /**
   * @param {GPUBuffer} readback
   * @param {number} size in bytes
   * @returns {Promise<Uint32Array>}
   */
  async #read(readback, size) {
    const mapped = readback.mapAsync(GPUMapMode.READ, 0, size);
    if (!this.#isFallback) this.#asked = noticed(this.#device, mapped, this.#asked);
    await this.#guard.wait(mapped, "a step", DEADLINE_MS);
    const words = new Uint32Array(readback.getMappedRange(0, size)).slice();
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
  encode(encoder, plan, 1, 1, null, 0);
  device.queue.submit([encoder.finish()]);
}

/**
 * @param {GPUCommandEncoder} encoder
 * @param {Plan} plan
 * @param {number} nSequences
 * @param {number} tokensPerSequence
 * @param {GPUBindGroup | null} stepGroup
 * @param {number} offset of the step's slot in the uniforms
 */
function encode(encoder, plan, nSequences, tokensPerSequence, stepGroup, offset) {
  const pass = encoder.beginComputePass();
  if (stepGroup) pass.setBindGroup(1, stepGroup, [offset]);
  dispatch(pass, plan, nSequences, tokensPerSequence);
  pass.end();
}

/**
 * @param {GPUComputePassEncoder} pass with its step group set
 * @param {Plan} plan
 * @param {number} nSequences
 * @param {number} tokensPerSequence
 */
function dispatch(pass, plan, nSequences, tokensPerSequence) {
  const { pipelines, groups, grid } = plan;
  for (let i = 0; i < pipelines.length; i++) {
    pass.setPipeline(pipelines[i]);
    pass.setBindGroup(0, groups[i]);
    const tokensPerWorkgroup = grid[2 * i + 1] || tokensPerSequence;
    pass.dispatchWorkgroups(grid[2 * i], Math.ceil((nSequences * tokensPerSequence) / tokensPerWorkgroup));
  }
}
