// @ts-check
/**
 * The page's only script: makes the first worker while the page's Python is still on its way, so that both start at
 * once. `py/ui/engine_client.py` takes it over, and hears from it what it has said so far.
 */

const worker = new Worker("worker/engine_worker.js", { type: "module" });
const heard = /** @type {Event[]} */ ([]);
const types = ["message", "error", "messageerror"];

/**
 * Keeps an event from listeners that were added later.
 * @param {Event} event
 */
function note(event) {
  heard.push(event);
  event.stopImmediatePropagation();
}

function replay() {
  for (const type of types) worker.removeEventListener(type, note);
  // Copies: Chromium remembers of an event that it was kept (measured, 156).
  for (const event of heard) worker.dispatchEvent(new /** @type {any} */ (event.constructor)(event.type, event));
}

for (const type of types) worker.addEventListener(type, note);
let isTaken = false;

/** @type {any} */ (window).clutchEarly = {
  /**
   * Once whoever takes it is done with what it is doing, it hears what the worker has said so far.
   * @returns {Worker | null} the worker, once
   */
  take() {
    if (isTaken) return null;
    isTaken = true;
    setTimeout(replay);
    return worker;
  },
};
