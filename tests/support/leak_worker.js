// Runs before the worker's own code, by `worker_patch.py`: counts what is alive on the GPU, notes each submit, keeps the
// newest device for a test to lose. With `pyodide.mjs` wrapped as in `leaks.py`, counts what Pyodide keeps alive too.
const alive = { buffers: 0, bytes: 0, devices: 0 };
const submits = [];
let newestDevice = null;

function patch(prototype, name, around) {
  const original = prototype[name];
  prototype[name] = function (...args) {
    return around.call(this, (...given) => original.apply(this, given), args);
  };
}

const liveBuffers = new Map();
const liveDevices = new Set();

function bury(buffer) {
  if (!liveBuffers.delete(buffer)) return;
  alive.buffers -= 1;
  alive.bytes -= buffer.size;
}

patch(GPUDevice.prototype, "createBuffer", function (original, args) {
  const buffer = original(...args);
  liveBuffers.set(buffer, this);
  alive.buffers += 1;
  alive.bytes += buffer.size;
  return buffer;
});
patch(GPUBuffer.prototype, "destroy", function (original) {
  bury(this);
  return original();
});
patch(GPUAdapter.prototype, "requestDevice", async (original, args) => {
  newestDevice = await original(...args);
  liveDevices.add(newestDevice);
  alive.devices += 1;
  return newestDevice;
});
// What a destroyed device made goes with it.
patch(GPUDevice.prototype, "destroy", function (original) {
  if (liveDevices.delete(this)) alive.devices -= 1;
  for (const [buffer, device] of liveBuffers) if (device === this) bury(buffer);
  return original();
});
patch(GPUQueue.prototype, "submit", (original, args) => {
  submits.push(performance.timeOrigin + performance.now());
  return original(...args);
});

/** Pyodide's counters are private: its own tests read the same ones. */
function countPython() {
  const pyodide = self.pyodideOfTheTest;
  if (!pyodide) return {};
  const objects = pyodide.runPython(`
import gc
gc.collect()
len(gc.get_objects())
`);
  const { _module: module } = pyodide;
  return { references: module.hiwire.num_keys(), proxies: module.pyproxy_alloc_map.size, objects, heap: module.HEAPU8.length };
}

const channel = new BroadcastChannel("clutch-test-leaks");
channel.onmessage = ({ data }) => {
  if (data === "lose") newestDevice.destroy();
  if (data === "ask") channel.postMessage({ ...alive, submits: [...submits], ...countPython() });
};
