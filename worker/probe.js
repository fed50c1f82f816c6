// @ts-check
/**
 * Finds out whether this worker can run the engine at all, before 13 MB of Python are fetched, and opens the GPU later.
 */

import { Gpu } from "./gpu.js";
import { named, within } from "./wait.js";

const ADAPTER_MS = 10_000;
const DEVICE_MS = 10_000;

/** What the kernels use, whatever the model; what a model needs beyond it is checked by its memory plan. */
const REQUIRED = {
  maxComputeInvocationsPerWorkgroup: 256,
  maxComputeWorkgroupSizeX: 256,
  maxComputeWorkgroupStorageSize: 16384,
  maxComputeWorkgroupsPerDimension: 65535,
  maxStorageBuffersPerShaderStage: 8,
  maxStorageBufferBindingSize: 128 << 20,
  maxBufferSize: 128 << 20,
};

/** What is used where it is to be had. */
const FEATURES = /** @type {GPUFeatureName[]} */ (["subgroups", "timestamp-query"]);

/**
 * @typedef {{code: string, message: string, hint: string, data: object}} WireError
 * @returns {Promise<{adapter: object} | {error: WireError}>} the fields of the `capabilities` event, or of an `error`
 */
export async function probe() {
  if (!navigator.gpu) {
    return incapable("This browser has no WebGPU.", "Use a current Chrome or Edge; on Linux, WebGPU may need to be enabled.");
  }
  const adapter = await requestAdapter().catch(() => null);
  if (!adapter) {
    return incapable(
      "This browser found no GPU it can use.",
      "Check that hardware acceleration is on, and that the graphics driver is up to date.",
    );
  }
  for (const [limit, needed] of Object.entries(REQUIRED)) {
    const offered = adapter.limits[/** @type {keyof typeof REQUIRED} */ (limit)];
    if (offered < needed) {
      return incapable(
        `This GPU's ${limit} is ${offered}; Clutch needs ${needed}.`,
        "Try another GPU, or an up-to-date browser and driver.",
        { limit, offered, needed },
      );
    }
  }
  return { adapter: describe(adapter) };
}

/**
 * Opens a device with all that the adapter offers; always from a new adapter, because an old one gives no second device.
 * @returns {Promise<Gpu>}
 */
export async function openGpu() {
  const adapter = await requestAdapter();
  if (!adapter) throw named("OperationError", "the browser found no GPU it can use any more");
  const requiredLimits = Object.fromEntries(Object.keys(REQUIRED).map((limit) => [limit, adapter.limits[limit]]));
  const requiredFeatures = FEATURES.filter((feature) => adapter.features.has(feature));
  const opening = adapter.requestDevice({ requiredLimits, requiredFeatures });
  const late = named("DeviceTimeout", `opening the GPU took more than ${DEVICE_MS} ms`);
  try {
    return new Gpu(await within(opening, DEVICE_MS, late), describe(adapter));
  } catch (error) {
    // When it comes after all, nobody waits for it.
    opening.then((device) => device.destroy(), () => {});
    throw error;
  }
}

/**
 * The first `requestAdapter()` of a fresh Chromium can be null although there is a GPU (measured, Chromium 156 on NVIDIA
 * under Linux): ask a few times.
 * @returns {Promise<GPUAdapter | null>}
 */
async function requestAdapter() {
  for (let attempt = 0; attempt < 5; attempt++) {
    const request = navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
    const adapter = await within(request, ADAPTER_MS, named("DeviceTimeout", `no GPU was found in ${ADAPTER_MS} ms`));
    if (adapter) return adapter;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return null;
}

/**
 * @param {GPUAdapter} adapter
 * @returns {import("./gpu.js").Adapter}
 */
function describe(adapter) {
  const { vendor, architecture, description, isFallbackAdapter, subgroupMinSize } = adapter.info;
  const subgroup_size = adapter.features.has("subgroups") ? subgroupMinSize : 0;
  return { vendor, architecture, description, is_fallback: Boolean(isFallbackAdapter), subgroup_size };
}

/**
 * @param {string} message
 * @param {string} hint
 * @param {object} data
 * @returns {{error: WireError}}
 */
function incapable(message, hint, data = {}) {
  return { error: { code: "E100", message, hint, data } };
}
