// Runs before the worker's own code, by `worker_patch.py`: lets the n-th call of a browser API go wrong.
//
// A rule is {api, match?, nth?, times?, acts: [...], then?: rule}. It waits for the n-th call of `api` whose text (a
// label, an address, a posted message) contains `match`, does its acts there, and arms `then`. Rules come over a
// BroadcastChannel, or as FIRST_RULES in front of this text; what fired, and what is alive on the GPU, goes back.

const channel = new BroadcastChannel("clutch-test-faults");
const { setTimeout: realSetTimeout } = self;
const rules = [];
const fired = [];
const liveBuffers = new Map();
const liveDevices = new Set();
let newestDevice = null;
// Of the real time: a hang must not last as long as the product's patience.
let isHurried = false;
let clockOffset = 0;

function arm(rule) {
  rules.push({ nth: 1, times: 1, acts: [], ...rule });
}

function lose() {
  newestDevice.destroy();
}

// The page's first message is never overtaken.
const isConnected = new Promise((resolve) => self.addEventListener("message", resolve, { once: true }));
let hasConnected = false;
isConnected.then(() => realSetTimeout(() => (hasConnected = true)));

function receive(json) {
  self.dispatchEvent(new MessageEvent("message", { data: { json } }));
}

const ACTS = {
  message({ json }) {
    if (hasConnected) receive(json);
    else isConnected.then(() => realSetTimeout(() => receive(json)));
  },
  lose,
  die() {
    self.reportError(new Error("the worker dies for a test"));
    self.close();
  },
};

// What the call does instead of its work.
const OUTCOMES = {
  reject: ({ name, message }) => Promise.reject(failure(name, message)),
  throw({ name, message }) {
    throw failure(name, message);
  },
  never() {
    isHurried = true;
    return new Promise(() => {});
  },
  null: () => Promise.resolve(null),
  oom: () => Promise.resolve(new GPUOutOfMemoryError("out of memory, for a test")),
  invalid: () => Promise.resolve(new GPUValidationError("not valid, for a test")),
  garbage: async (_act, call) => new ArrayBuffer((await call()).byteLength),
  uncompilable: () => Promise.reject(new GPUPipelineError("no, for a test", { reason: "internal" })),
  small: () => ({ maxBufferSize: 1 << 16, maxStorageBufferBindingSize: 1 << 16, maxComputeWorkgroupStorageSize: 1 << 14 }),
};

function failure(name, message = "for a test") {
  const builtIn = { TypeError, RangeError, Error }[name];
  return builtIn ? new builtIn(message) : new DOMException(message, name);
}

/** Does what the rules say about a call; returns the outcome that replaces the call's own, or null. */
function called(api, text = "") {
  let outcome = null;
  for (const rule of [...rules]) {
    if (rule.api !== api || !text.includes(rule.match ?? "")) continue;
    rule.nth -= 1;
    if (rule.nth > 0) continue;
    rule.times -= 1;
    if (rule.times === 0) rules.splice(rules.indexOf(rule), 1);
    if (rule.then) arm(rule.then);
    for (const act of rule.acts) {
      fired.push(`${api}: ${act.do}`);
      // A device can only be lost once it is there.
      if (act.do === "lose" && api === "requestDevice") outcome = "lose";
      else if (act.do in ACTS) ACTS[act.do](act);
      else outcome = (call) => OUTCOMES[act.do](act, call);
    }
  }
  return outcome;
}

/** Wraps `owner[name]`; `textOf` says what `match` looks at, `after` sees the result. */
function wrap(owner, name, textOf = () => "", after = () => {}) {
  const original = owner[name];
  owner[name] = function (...args) {
    const outcome = called(name, textOf.call(this, ...args));
    if (typeof outcome === "function") return outcome(() => original.apply(this, args));
    const result = original.apply(this, args);
    after.call(this, result, outcome);
    return result;
  };
}

function noteDevice(promise, outcome) {
  promise.then((device) => {
    newestDevice = device;
    liveDevices.add(device);
    if (outcome === "lose") device.destroy();
  });
}

wrap(GPU.prototype, "requestAdapter");
wrap(GPUDevice.prototype, "createComputePipelineAsync", ({ label }) => label);
wrap(GPUDevice.prototype, "popErrorScope");
wrap(GPUQueue.prototype, "submit");
wrap(GPUQueue.prototype, "writeBuffer", (buffer) => buffer.label);
wrap(GPUQueue.prototype, "onSubmittedWorkDone");
wrap(GPUBuffer.prototype, "mapAsync", function () {
  return this.label;
});
wrap(ReadableStreamDefaultReader.prototype, "read");
wrap(Response.prototype, "arrayBuffer");
wrap(self, "fetch", (target) => String(target.url ?? target));
wrap(self, "postMessage", (message) => String(message?.json ?? ""));
wrap(WebAssembly, "instantiate");
wrap(WebAssembly, "instantiateStreaming");

const { requestDevice } = GPUAdapter.prototype;
GPUAdapter.prototype.requestDevice = function (...args) {
  const outcome = called("requestDevice");
  if (typeof outcome === "function") return outcome();
  const device = requestDevice.apply(this, args);
  noteDevice(device, outcome);
  // Behind the note, so that a loss comes first.
  return device.then((opened) => opened);
};

wrap(
  GPUDevice.prototype,
  "createBuffer",
  ({ label }) => label,
  function (buffer) {
    liveBuffers.set(buffer, this);
  },
);
const { destroy } = GPUBuffer.prototype;
GPUBuffer.prototype.destroy = function () {
  called("destroyBuffer", this.label);
  liveBuffers.delete(this);
  return destroy.call(this);
};
const destroyDevice = GPUDevice.prototype.destroy;
GPUDevice.prototype.destroy = function () {
  liveDevices.delete(this);
  return destroyDevice.call(this);
};

const { get: limitsOf } = Object.getOwnPropertyDescriptor(GPUDevice.prototype, "limits");
Object.defineProperty(GPUDevice.prototype, "limits", {
  get() {
    const outcome = called("limits");
    return typeof outcome === "function" ? outcome() : limitsOf.call(this);
  },
});

// The tokenizer's module leaves its name on the global object.
let tokenizers;
Object.defineProperty(self, "tokenizers", {
  configurable: true,
  get: () => tokenizers,
  set(exports) {
    tokenizers = exports;
    queueMicrotask(() => {
      if (exports.Tokenizer) wrap(exports.Tokenizer.prototype, "encode", (text) => text);
    });
  },
});

self.setTimeout = (callback, delay = 0, ...args) => {
  if (!isHurried || delay < 5000) return realSetTimeout(callback, delay, ...args);
  isHurried = false;
  return realSetTimeout(callback, delay / 100, ...args);
};
const now = performance.now.bind(performance);
performance.now = () => now() + clockOffset;

const COMMANDS = {
  arm: ({ rule }) => (rule.api === "now" ? rule.acts.forEach((act) => ACTS[act.do](act)) : arm(rule)),
  // As after minutes of peace: the next loss is the first.
  clear() {
    rules.length = 0;
    fired.length = 0;
    isHurried = false;
    clockOffset += 600_000;
  },
  report() {},
};
channel.onmessage = ({ data }) => {
  if (!(data.command in COMMANDS)) return;
  COMMANDS[data.command](data);
  // With its device a buffer is gone too.
  const buffers = [...liveBuffers.values()].filter((device) => liveDevices.has(device)).length;
  channel.postMessage({ fired, unfired: rules.length, buffers, devices: liveDevices.size });
};
for (const rule of FIRST_RULES) arm(rule);
