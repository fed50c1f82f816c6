// @ts-check
/**
 * Finds out whether this worker can run the engine at all, before 13 MB of Python are fetched.
 */

/**
 * The first `requestAdapter()` of a fresh Chromium can be null although there is a GPU (measured, Chromium 156 on NVIDIA
 * under Linux): ask a few times.
 * @returns {Promise<GPUAdapter | null>}
 */
export async function requestAdapter() {
  for (let attempt = 0; attempt < 5; attempt++) {
    const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
    if (adapter) return adapter;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return null;
}

/**
 * @typedef {{code: string, message: string, hint: string, data: object}} WireError
 * @returns {Promise<{adapter: object} | {error: WireError}>}
 */
export async function probe() {
  if (!navigator.gpu) {
    return incapable("This browser has no WebGPU.", "Use a current Chrome or Edge; on Linux, WebGPU may need to be enabled.");
  }
  const adapter = await requestAdapter();
  if (!adapter) {
    return incapable(
      "This browser found no GPU it can use.",
      "Check that hardware acceleration is on, and that the graphics driver is up to date.",
    );
  }
  const { vendor, architecture, description, isFallbackAdapter } = adapter.info;
  return { adapter: { vendor, architecture, description, is_fallback: Boolean(isFallbackAdapter) } };
}

/**
 * @param {string} message
 * @param {string} hint
 * @returns {{error: WireError}}
 */
function incapable(message, hint) {
  return { error: { code: "E100", message, hint, data: {} } };
}
