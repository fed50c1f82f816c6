// Promises of messages that the engine has not sent yet; `page_bench.js` and `kv_bench.js` wait with them.

window.newWaiters = () => {
  const waiters = new Set();
  let timeoutMs = 300_000;

  /** @returns a promise of the next message that `accepts` takes; an error of the engine rejects it */
  function until(accepts, what) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => end(reject, new Error(`${what}: nothing in ${timeoutMs} ms`)), timeoutMs);
      const waiter = (message) => {
        if (message.kind === "error") end(reject, new Error(`${what}: ${message.code} ${message.message}`));
        else if (accepts(message)) end(resolve, message);
      };
      const end = (settle, value) => {
        clearTimeout(timer);
        waiters.delete(waiter);
        settle(value);
      };
      waiters.add(waiter);
    });
  }

  /** Tells those who wait of a message. */
  const hear = (message) => {
    for (const waiter of [...waiters]) waiter(message);
  };

  return {
    until,
    hear,
    setTimeoutMs: (ms) => {
      timeoutMs = ms;
    },
  };
};
