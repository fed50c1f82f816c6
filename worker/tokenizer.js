// @ts-check
/** Hugging Face's tokenizers in WASM, from the vendored @mlc-ai/web-tokenizers. */

/**
 * @param {Uint8Array} json a Hugging Face tokenizer.json
 * @returns {Promise<{encode: (text: string) => Int32Array}>}
 */
export async function openTokenizer(json) {
  // A UMD file: as a module it exports nothing and leaves its name on globalThis.
  await import(new URL("../static/vendor/tokenizers/index.js", import.meta.url).href);
  return /** @type {any} */ (globalThis).tokenizers.Tokenizer.fromJSON(json.buffer);
}
