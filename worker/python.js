// @ts-check
/**
 * Starts the pinned Pyodide with the engine imported, from a picture of its memory where there is one.
 *
 * A start from nothing takes seconds, one from the picture a tenth of that. The picture is taken on the first visit,
 * before any message was read, and kept in the browser's own file system. Its name is the hash of what it was made
 * from; its last bytes are its own hash. Whatever is wrong with it, Python starts without. The functions for it are
 * private in Pyodide, whose version is pinned: `_makeSnapshot` gives a Python that sees the global object through a
 * proxy, good for nothing but the picture, so the first visit starts from the picture too.
 */

import { forget, keep, recall, sha256 } from "./kept.js";

const ENGINE_ROOT = "/engine";
const ENTRY = "clutch.main";

/**
 * @param {URL} root of the page
 * @param {Record<string, object>} modules what Python can import from here, by name
 * @returns {Promise<any>} the Python module `clutch.main`
 */
export async function startPython(root, modules) {
  const indexURL = new URL("static/vendor/pyodide/", root).href;
  const [{ loadPyodide, version }, archive] = await Promise.all([
    import(`${indexURL}pyodide.mjs`),
    fetch(new URL("engine.zip", root)).then((response) => response.arrayBuffer()),
  ]);

  /** @param {object} options of `loadPyodide` */
  const start = async (options) => {
    const pyodide = await loadPyodide({ indexURL, ...options });
    // Files are not part of the picture, nor is what was registered.
    pyodide.unpackArchive(archive, "zip", { extractDir: ENGINE_ROOT });
    for (const [name, module] of Object.entries(modules)) pyodide.registerJsModule(name, module);
    pyodide.runPython(`import sys\nif "${ENGINE_ROOT}" not in sys.path: sys.path.insert(0, "${ENGINE_ROOT}")`);
    return { pyodide, main: pyodide.pyimport(ENTRY) };
  };

  const name = `${version}-${hex(await sha256(archive))}`;
  const picture = (await recall(name)) ?? (await take(start, modules, name));
  if (picture) {
    try {
      const { main } = await start({
        _loadSnapshot: picture,
        _snapshotDeserializer: (/** @type {string} */ module) => modules[module],
      });
      return main;
    } catch (error) {
      console.info(`Python does not start from its picture: ${error}`);
      await forget(name);
    }
  }
  return (await start({})).main;
}

/**
 * @param {(options: object) => Promise<{pyodide: any}>} start
 * @param {Record<string, object>} modules
 * @param {string} name
 * @returns {Promise<Uint8Array | null>} null where it cannot be taken
 */
async function take(start, modules, name) {
  const { pyodide } = await start({ _makeSnapshot: true });
  try {
    const picture = pyodide.makeMemorySnapshot({
      serializer(/** @type {object} */ held) {
        const module = Object.keys(modules).find((name) => modules[name] === held);
        if (module === undefined) throw new Error(`Python holds ${held}`);
        return module;
      },
    });
    keep(name, picture);
    return picture;
  } catch (error) {
    console.info(`Python's memory cannot be kept: ${error}`);
    return null;
  }
}

/** @param {ArrayBuffer} bytes */
function hex(bytes) {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
