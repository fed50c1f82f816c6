// @ts-check
/**
 * The only place in the worker that waits for the GPU: every wait races the device's loss and a deadline.
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
        (error) => setTimeout(() => fail(error), LOSS_GRACE_MS),
      );
    });
  }
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
