// Runs before the page's own scripts: notes when each engine event and each click came, and clicks Stop by itself
// once enough tokens were seen, so that no round trip to the test is part of a measured time.
//
// `sessions` has {state, nEndings, nTokens} of each; the numbers beside it are of all sessions together.
window.clutchRecorder = { events: [], clicks: [], nEndings: 0, nTokens: 0, stopAfter: 0, sessions: {} };

function inView() {
  return Number(document.body.dataset.session ?? 0);
}

document.addEventListener(
  "click",
  (event) => {
    const button = event.target instanceof Element && event.target.closest("button[id]");
    if (button) window.clutchRecorder.clicks.push([performance.now(), button.id, inView()]);
  },
  true,
);

document.addEventListener("clutch", (event) => {
  const recorder = window.clutchRecorder;
  recorder.events.push([performance.now(), event.detail]);
  const message = JSON.parse(event.detail);
  const counts = (recorder.sessions[message.session ?? 0] ??= { state: "", nEndings: 0, nTokens: 0 });
  if (message.kind === "state") counts.state = message.state;
  if (message.kind === "started") recorder.nTokens = counts.nTokens = 0;
  const isFatal = message.kind === "error" && (message.request_id !== null || message.code === "E700");
  if (message.kind === "finished" || isFatal) {
    recorder.nEndings += 1;
    // The end of the engine is the end of every answer.
    const ended = message.code === "E700" ? Object.values(recorder.sessions) : [counts];
    for (const session of ended) session.nEndings += 1;
  }
  if (message.kind !== "delta") return;
  recorder.nTokens += message.token_ids.length;
  counts.nTokens += message.token_ids.length;
  // Stop is a button of the chat in view.
  if (recorder.stopAfter > 0 && message.session === inView() && counts.nTokens >= recorder.stopAfter) {
    recorder.stopAfter = 0;
    document.getElementById("stop").click();
  }
});
