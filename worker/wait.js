// @ts-check
/**
 * The only place in the worker that waits for the GPU or the network: every wait has a deadline, and one for a device
 * races its loss too.
 *
 * After a loss most promises of WebGPU still resolve, or never settle at all; `device.lost` alone tells (WebGPU
 * specification, "Errors & Debugging"). The rejections are named, so that Python can tell them apart.
 */

// A call that fails because the device was lost may say so before `device.lost` does; the loss is the better answer.
const LOSS_GRACE_MS = 50;

/** Waits on behalf of one device. */
export class Guard {
  /** What to call when the device is lost: one entry a wait, so that nothing piles up behind `device.lost`. */
  #waiting = /** @type {Set<(error: Error) => void>} */ (new Set());
  /** @type {Error | null} */
  #lost = null;

  /** @param {GPUDevice} device */
  constructor(device) {
    device.lost.then((info) => {
      this.#lost = named("DeviceLost", `the GPU was lost (${info.reason}) ${info.message}`.trim());
      for (const reject of this.#waiting) reject(this.#lost);
    });
  }

  /**
   * @template T
   * @param {Promise<T>} promise what is waited for
   * @param {string} what its name, for the error
   * @param {number} deadlineMs how long it may take
   * @returns {Promise<T>}
   */
  wait(promise, what, deadlineMs) {
    if (this.#lost) return Promise.reject(this.#lost);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => fail(named("DeviceTimeout", `${what} took more than ${deadlineMs} ms`)), deadlineMs);
      const settle = () => {
        clearTimeout(timer);
        this.#waiting.delete(fail);
      };
      const fail = (/** @type {Error} */ error) => {
        settle();
        reject(error);
      };
      this.#waiting.add(fail);
      promise.then(
        (value) => {
          settle();
          resolve(value);
        },
        // Pyodide takes a GPUPipelineError for no error at all, and whoever waits for it waits for ever (measured).
        (error) => setTimeout(() => fail(named(error.name, error.message)), LOSS_GRACE_MS),
      );
    });
  }
}

/**
 * Chromium notices finished work up to 2.5 ms late unless something asks its GPU process (measured, Chromium 156): an
 * error scope asks. Delete when a plain mapAsync of 0.5 ms of work takes less than 1 ms. Steps end in their order, so
 * only the oldest is asked for: more questions would keep the GPU process from its work.
 * @param {GPUDevice} device
 * @param {Promise<undefined>} mapped or done in another way
 * @param {Promise<void>} before until the steps before have been asked for
 */
export async function noticed(device, mapped, before) {
  let isPending = true;
  const end = () => (isPending = false);
  mapped.then(end, end);
  await before;
  while (isPending) {
    device.pushErrorScope("validation");
    await Promise.race([mapped, device.popErrorScope()]).catch(end);
  }
}

/**
 * Waits for what is not a device's, with a deadline.
 * @template T
 * @param {Promise<T>} promise
 * @param {number} deadlineMs
 * @param {Error} late what to fail with
 * @returns {Promise<T>}
 */
export function within(promise, deadlineMs, late) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(late), deadlineMs);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/**
 * @param {string} name
 * @param {string} message
 * @returns {Error}
 */
export function named(name, message) {
  const error = new Error(message);
  error.name = name;
  return error;
}
