// Speaks the protocol to one engine worker, from an otherwise empty page of the site: clock and messages are here, so
// that no round trip to the driver is part of a measured time. Times are ms, of `performance.now()`.

window.kvBench = (() => {
  const MAX_SESSIONS = 16;
  const GREEDY = { temperature: 0 };
  // The engine's last look at the pool comes close to `ready`.
  const LAST_LOOK_MS = 100;
  const now = () => performance.now();
  const waiters = window.newWaiters();
  const { until } = waiters;
  const epochs = new Map();
  const pools = [];
  let worker;
  let requestId = 0;

  function hear(message) {
    if (message.kind === "pool") pools.push(message);
    waiters.hear(message);
  }

  function send(kind, fields = {}) {
    worker.postMessage({ json: JSON.stringify({ kind, ...fields }) });
  }

  /** Starts the engine. */
  async function start(timeoutMs) {
    waiters.setTimeoutMs(timeoutMs);
    worker = new Worker("/worker/engine_worker.js", { type: "module" });
    worker.onmessage = ({ data }) => hear({ at: now(), ...JSON.parse(data.json) });
    worker.onerror = ({ message }) => hear({ kind: "error", code: "worker", message });
    const capable = until((message) => message.kind === "capabilities", "capabilities");
    const up = until((message) => message.kind === "state", "start");
    worker.postMessage({ mark: new SharedArrayBuffer(4 * MAX_SESSIONS) });
    await up;
    return (await capable).adapter;
  }

  async function load(fields) {
    const loaded = until((message) => message.kind === "loaded", "load");
    const ready = loaded.then(() => until((message) => message.state === "ready", "ready"));
    send("load", { request_id: ++requestId, ...fields });
    const { model, memory } = await loaded;
    await ready;
    return { model, memory };
  }

  async function unload() {
    const empty = until((message) => message.state === "empty", "unload");
    send("unload");
    await empty;
  }

  async function open({ session, source }) {
    const opened = until((message) => message.kind === "opened" && message.session === session, "open");
    epochs.set(session, 0);
    send("open_session", { session, epoch: 0, ...(source === undefined ? {} : { source }) });
    await opened;
  }

  async function close(session) {
    const closed = until((message) => message.kind === "closed" && message.session === session, "close");
    send("close_session", { session });
    await closed;
  }

  /** Empties a session; it passes through "resetting" of the new epoch on its way to "ready". */
  async function reset(session) {
    const epoch = (epochs.get(session) ?? 0) + 1;
    epochs.set(session, epoch);
    const isReady = (message) => message.session === session && message.epoch === epoch && message.state === "ready";
    const ready = until(isReady, "reset");
    send("reset", { session, epoch });
    await ready;
  }

  /**
   * Asks greedily, and waits until the session is ready again.
   * @param {{session: number, max_tokens: number}} how with `prompt` or `messages`, and other fields of `generate`
   */
  async function generate({ session, max_tokens, ...fields }) {
    const request_id = ++requestId;
    const deltas = [];
    let started, finished;
    const ready = until((message) => {
      if (message.session !== session) return false;
      if (message.request_id === request_id) {
        if (message.kind === "started") started = message;
        if (message.kind === "delta" && message.token_ids.length > 0) deltas.push(message);
        if (message.kind === "finished") finished = message;
      }
      return finished !== undefined && message.state === "ready";
    }, "generate");
    const askedAt = now();
    send("generate", {
      request_id,
      session,
      epoch: epochs.get(session) ?? 0,
      params: { ...GREEDY, max_tokens },
      ...fields,
    });
    await ready;
    // An answer that ends with its first token has no delta.
    const first = deltas[0] ?? finished;
    return {
      ttft_ms: first.at - askedAt,
      first_at: first.at,
      last_at: (deltas.at(-1) ?? finished).at,
      tokens_of_first: deltas[0]?.token_ids.length ?? 0,
      n_tokens: finished.output_ids.length,
      prompt_tokens: started.prompt_ids.length,
      cached_tokens: started.num_cached_tokens,
      kv_length: finished.usage.kv_length,
      text: finished.text,
      output_ids: finished.output_ids,
      top_logits: finished.top_logits ?? [],
    };
  }

  /** Asks in several sessions at once. */
  const together = (requests) => Promise.all(requests.map(generate));

  /**
   * All sessions at once, each turn after turn: what was said so far, and new words.
   * @param {{words: string, max_tokens: number}[][]} sessions
   * @returns the answers of each session, and what the pool looked like meanwhile
   */
  async function workload(sessions) {
    const nBefore = pools.length;
    const converse = async (turns, session) => {
      const answers = [];
      let prompt = "";
      for (const { words, max_tokens } of turns) {
        prompt = prompt ? `${prompt} ${words}` : words;
        const answer = await generate({ session, prompt, max_tokens });
        prompt += answer.text;
        answers.push(answer);
      }
      return answers;
    };
    const answers = await Promise.all(sessions.map(converse));
    await new Promise((resolve) => setTimeout(resolve, LAST_LOOK_MS));
    return { answers, pools: pools.slice(nBefore).map(({ cells, ...pool }) => pool) };
  }

  return { start, load, unload, open, close, reset, generate, together, workload };
})();
