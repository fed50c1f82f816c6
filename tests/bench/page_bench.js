// Takes one sample of Stop, Continue and Reset at a time, inside the page: clicks and clock are here, so that no round
// trip to the driver is part of a measured time. Times are ms, of `performance.now()`.
//
// The "clutch" event of an engine message comes after the page has shown it; the promises below resolve after both.

window.clutchBench = (() => {
  const now = () => performance.now();
  const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const { until, hear, setTimeoutMs } = window.newWaiters();
  let log = [];
  let epoch = 0;

  document.addEventListener("clutch", ({ detail }) => {
    const message = { at: now(), ...JSON.parse(detail) };
    log.push(message);
    hear(message);
    if (message.kind === "state") epoch = Math.max(epoch, message.epoch);
  });

  const isNewText = (message) => message.kind === "delta" && message.token_ids.length > 0;
  const isReady = (message) => message.kind === "state" && message.state === "ready";
  const seen = (accepts) => log.filter(accepts);
  const countTokens = (deltas) => deltas.reduce((n, message) => n + message.token_ids.length, 0);

  /** @returns when it was clicked: before the page's own listener, which runs inside click() */
  function click(id) {
    const button = document.getElementById(id);
    if (button.disabled) throw new Error(`#${id} is disabled in state ${document.body.dataset.state}`);
    const at = now();
    button.click();
    return at;
  }

  function type(text) {
    const box = document.getElementById("prompt");
    box.value = text;
    box.dispatchEvent(new Event("input", { bubbles: true }));
  }

  /**
   * Asks, and waits until the phase has begun and `delayMs` more.
   * @returns whether it is still that phase then
   */
  async function ask({ prompt, phase, delayMs, minTokens }) {
    log = [];
    type(prompt);
    const isStarted = (message) => message.kind === "started";
    const isWriting = () => countTokens(seen(isNewText)) >= minTokens;
    const begun = until(phase === "prefill" ? isStarted : isWriting, "generate");
    click("generate");
    await begun;
    await sleep(delayMs);
    const isOver = phase === "prefill" ? isNewText : (message) => message.kind === "finished";
    return seen(isOver).length === 0;
  }

  /** Clicks Stop and sees to the end of it. */
  async function stop() {
    const text = [...document.querySelectorAll("#transcript article.message[data-role=assistant] .text")].at(-1);
    let shown = text.textContent;
    let lastShownAt = null;
    const observer = new MutationObserver(() => {
      if (text.textContent === shown) return;
      shown = text.textContent;
      lastShownAt = now();
    });
    observer.observe(text, { childList: true, characterData: true, subtree: true });
    const finished = until((message) => message.kind === "finished", "stop");
    const ready = finished.then(() => until(isReady, "ready after stop"));
    const at = click("stop");
    const end = await finished;
    const idle = await ready;
    observer.disconnect();
    const late = seen((message) => isNewText(message) && message.at > at);
    return {
      stop_to_last_token_ms: lastShownAt === null ? 0 : lastShownAt - at,
      stop_to_acknowledged_ms: end.at - at,
      stop_to_gpu_idle_ms: idle.at - at,
      tokens_after_stop: countTokens(late),
      step_ms: end.timings.step_ms ?? null,
    };
  }

  /** Clicks Reset; the engine passes through "resetting" of the new epoch on its way to "ready". */
  async function reset() {
    const before = epoch;
    let isResetting = false;
    const ready = until((message) => {
      if (message.kind !== "state" || message.epoch <= before) return false;
      if (message.state === "resetting") isResetting = true;
      return isResetting && message.state === "ready";
    }, "reset");
    const at = click("reset");
    return (await ready).at - at;
  }

  /** @returns the prompt's tokens, and how long the parts of its prefill took */
  function prefillFacts() {
    const [started] = seen((message) => message.kind === "started");
    const [first] = seen(isNewText);
    const chunks = seen((message) => message.kind === "progress" && message.phase === "prefill");
    const ends = [started, ...chunks].map((message) => message.at);
    return {
      prompt_tokens: started.prompt_ids.length,
      chunk_ms: ends.slice(1).map((at, i) => at - ends[i]),
      prefill_ms: first ? first.at - started.at : null,
    };
  }

  /** Ask, Stop at a random moment, Continue (in decode), and Reset while idle. */
  async function stopped(how) {
    const isInTime = await ask(how);
    if (!isInTime && seen((message) => message.kind === "finished").length > 0) {
      return { missed: true, ...prefillFacts(), reset_idle_ms: await reset() };
    }
    const found = { missed: !isInTime, ...prefillFacts(), ...(await stop()) };
    if (how.phase === "decode") {
      const more = until(isNewText, "continue");
      const at = click("continue");
      found.continue_to_first_token_ms = (await more).at - at;
      await stop();
    }
    found.reset_idle_ms = await reset();
    return found;
  }

  /** Ask, and Reset at a random moment. */
  async function interrupted(how) {
    const isInTime = await ask(how);
    return { missed: !isInTime, reset_busy_ms: await reset() };
  }

  return {
    stopped,
    interrupted,
    setTimeoutMs,
  };
})();
