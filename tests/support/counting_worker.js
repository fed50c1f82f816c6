// Counts what the worker asks of WebGPU and how large its wasm heaps are; answers "counts" on a BroadcastChannel.
// It runs before the real worker (see worker_patch.py).
const counts = { submits: 0, created: {}, liveBytes: 0, heapBytesAt: {}, liveBytesAt: {} };
const memories = new Set();

function patch(prototype, name, around) {
  const original = prototype[name];
  prototype[name] = function (...args) {
    return around.call(this, (...given) => original.apply(this, given), args);
  };
}

function countCreations(name) {
  patch(GPUDevice.prototype, name, (original, args) => {
    counts.created[name] = (counts.created[name] ?? 0) + 1;
    return original(...args);
  });
}

const CREATIONS = [
  "createBindGroup",
  "createBindGroupLayout",
  "createPipelineLayout",
  "createComputePipeline",
  "createComputePipelineAsync",
  "createShaderModule",
  "createQuerySet",
];
CREATIONS.forEach(countCreations);

const live = new WeakSet();
patch(GPUDevice.prototype, "createBuffer", (original, args) => {
  const buffer = original(...args);
  counts.created.createBuffer = (counts.created.createBuffer ?? 0) + 1;
  counts.liveBytes += buffer.size;
  live.add(buffer);
  return buffer;
});
patch(GPUBuffer.prototype, "destroy", function (original) {
  if (live.delete(this)) counts.liveBytes -= this.size;
  return original();
});
patch(GPUQueue.prototype, "submit", (original, args) => {
  counts.submits += 1;
  return original(...args);
});

// A heap is either made in JavaScript and imported, or exported by the module.
const Memory = WebAssembly.Memory;
WebAssembly.Memory = new Proxy(Memory, {
  construct(target, args) {
    const memory = new target(...args);
    memories.add(memory);
    return memory;
  },
});
for (const name of ["instantiate", "instantiateStreaming"]) {
  patch(WebAssembly, name, async (original, args) => {
    const result = await original(...args);
    for (const value of Object.values((result.instance ?? result).exports)) {
      if (value instanceof Memory) memories.add(value);
    }
    return result;
  });
}

// When a message of a kind (or a phase of the load) is sent for the first time, note the memory of that moment.
patch(self, "postMessage", (original, args) => {
  const text = args[0]?.json;
  if (typeof text === "string") {
    const message = JSON.parse(text);
    const moment = message.phase ?? message.kind;
    counts.heapBytesAt[moment] ??= [...memories].reduce((sum, memory) => sum + memory.buffer.byteLength, 0);
    counts.liveBytesAt[moment] ??= counts.liveBytes;
  }
  return original(...args);
});

const channel = new BroadcastChannel("clutch-test-counts");
channel.onmessage = ({ data }) => data === "ask" && channel.postMessage(counts);
