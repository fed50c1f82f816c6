// @ts-check
/**
 * Bytes of a model file: a range of them for Python to read, or a stream that goes to the GPU without entering the
 * Python heap. The file is behind a URL of this server, or one that the user chose.
 */

import { run } from "./replay.js";
import { named, within } from "./wait.js";

/** How long the server may say nothing. */
const SILENCE_MS = 30_000;

/** A model file. */
export class Source {
  #open;

  /**
   * @param {number} size in bytes
   * @param {(start: number, end: number) => Promise<ReadableStream<Uint8Array>>} open the bytes [start, end)
   */
  constructor(size, open) {
    this.size = size;
    this.#open = open;
  }

  /**
   * @param {string} url
   * @returns {Promise<Source>}
   */
  static async fromUrl(url) {
    const head = await request(url, { method: "HEAD" });
    const size = Number(head.headers.get("Content-Length"));
    return new Source(size, async (start, end) => {
      const response = await request(url, { headers: { Range: `bytes=${start}-${end - 1}` } });
      if (response.status !== 206 || !response.body) {
        throw named("SourceError", `${url}: asked for a range, got status ${response.status}`);
      }
      return response.body;
    });
  }

  /**
   * @param {File} file
   * @returns {Source}
   */
  static fromFile(file) {
    return new Source(file.size, async (start, end) => file.slice(start, end).stream());
  }

  /**
   * @param {number} start
   * @param {number} end
   * @returns {Promise<Uint8Array>} the bytes [start, end), or fewer at the end of the file
   */
  async read(start, end) {
    const last = Math.min(end, this.size);
    if (start >= last) return new Uint8Array();
    const stream = await this.#open(start, last);
    return new Uint8Array(await heard(new Response(stream).arrayBuffer()));
  }

  /**
   * @param {number} start
   * @returns {Promise<ByteStream>}
   */
  async stream(start) {
    return new ByteStream((await this.#open(start, this.size)).getReader());
  }
}

/** The rest of a file, front to back. */
export class ByteStream {
  #reader;
  /** What the last chunk still holds. */
  #rest = new Uint8Array();
  /** Grows to the largest piece; a piece is gathered here, because writeBuffer takes whole words. */
  #staging = new Uint8Array();

  /** @param {ReadableStreamDefaultReader<Uint8Array>} reader */
  constructor(reader) {
    this.#reader = reader;
  }

  /**
   * Pours the next pieces through `staging`, each followed by its words and its dispatch; the queue keeps that order.
   * @param {GPUDevice} device
   * @param {GPUBuffer} staging
   * @param {GPUBuffer} uniform
   * @param {number[]} sizes two numbers a piece: bytes that are dropped before it, and its own
   * @param {Uint8Array} words what goes to `uniform`, as many bytes for each piece
   * @param {import("./replay.js").Plan} plan a dispatch a piece
   */
  async pour(device, staging, uniform, sizes, words, plan) {
    const nPieces = sizes.length / 2;
    const nWordBytes = words.length / nPieces;
    for (let i = 0; i < nPieces; i++) {
      await this.#skip(sizes[2 * i]);
      await this.#write(device.queue, staging, sizes[2 * i + 1]);
      device.queue.writeBuffer(uniform, 0, words, i * nWordBytes, nWordBytes);
      run(device, plan.only(i));
    }
  }

  /**
   * Writes the next `size` bytes to the beginning of `buffer`.
   * @param {GPUQueue} queue
   * @param {GPUBuffer} buffer
   * @param {number} size
   */
  async #write(queue, buffer, size) {
    const padded = Math.ceil(size / 4) * 4;
    if (this.#staging.length < padded) this.#staging = new Uint8Array(padded);
    let filled = 0;
    while (filled < size) {
      const piece = await this.#take(size - filled);
      this.#staging.set(piece, filled);
      filled += piece.length;
    }
    queue.writeBuffer(buffer, 0, this.#staging, 0, padded);
  }

  /** @param {number} size */
  async #skip(size) {
    for (let left = size; left > 0; ) left -= (await this.#take(left)).length;
  }

  close() {
    this.#reader.cancel().catch(() => {});
  }

  /**
   * @param {number} most
   * @returns {Promise<Uint8Array>} 1 to `most` bytes
   */
  async #take(most) {
    while (this.#rest.length === 0) {
      const { done, value } = await heard(this.#reader.read());
      if (done) throw named("SourceError", "the file ended early");
      this.#rest = value;
    }
    const taken = this.#rest.subarray(0, most);
    this.#rest = this.#rest.subarray(taken.length);
    return taken;
  }
}

/**
 * @param {string} url
 * @param {RequestInit} init
 * @returns {Promise<Response>}
 */
async function request(url, init) {
  const response = await heard(fetch(url, init));
  if (!response.ok) throw named("SourceError", `${url}: the server answered ${response.status} ${response.statusText}`);
  return response;
}

/**
 * @template T
 * @param {Promise<T>} promise of bytes
 * @returns {Promise<T>}
 */
function heard(promise) {
  return within(promise, SILENCE_MS, named("SourceError", `nothing was heard of the file for ${SILENCE_MS} ms`));
}
