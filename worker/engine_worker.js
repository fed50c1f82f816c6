// @ts-check
/**
 * The worker's entry: probe the GPU, start Python with the engine, hand it the messages. No logic.
 */

import { openGpu, probe } from "./probe.js";
import { startPython } from "./python.js";
import { Plan, Replay, run } from "./replay.js";
import { openTokenizer } from "./tokenizer.js";
import { Source } from "./upload.js";

const ROOT = new URL("../", import.meta.url);

/** Messages that come while the engine starts; a module worker loses what arrives before a handler is set. */
const early = /** @type {MessageEvent[]} */ ([]);
const firstArrived = new Promise((resolve) => {
  self.onmessage = (event) => resolve(early.push(event));
});

/**
 * @param {string} kind
 * @param {object} fields as in `protocol.EVENTS`
 */
function send(kind, fields) {
  post(JSON.stringify({ kind, ...fields }));
}

/** @param {string} json an event; from Python a call with a text alone costs a tenth of one with an object */
function post(json) {
  self.postMessage({ json });
}

/** @param {string} phase */
function progress(phase) {
  send("progress", { phase, done: 0, total: 0, unit: "" });
}

// While the event loop turns the page hears from us; a hang is silence.
setInterval(() => send("heartbeat", {}), 1000);

async function start() {
  progress("probing");
  const found = await probe();
  if ("error" in found) {
    send("error", { request_id: null, session: null, epoch: 0, ...found.error });
    return;
  }
  send("capabilities", { ...found, shared_memory: self.crossOriginIsolated });
  progress("starting_python");
  const main = await startPython(ROOT, { clutch_worker: { Plan, Replay, Source, openGpu, openTokenizer, post, run } });
  await firstArrived;
  main.start(ROOT.href, early);
}

start().catch((error) => {
  send("error", {
    request_id: null,
    session: null,
    epoch: 0,
    code: "E900",
    message: `The engine did not start: ${error}`,
    hint: "Reload the page.",
    data: {},
  });
});
