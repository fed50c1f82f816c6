// Runs before the page's own scripts: notes when each engine event and each click came, and clicks Stop by itself
// once enough tokens were seen, so that no round trip to the test is part of a measured time.
window.clutchRecorder = { events: [], clicks: [], nEndings: 0, nTokens: 0, stopAfter: 0 };

document.addEventListener(
  "click",
  (event) => {
    const button = event.target instanceof Element && event.target.closest("button[id]");
    if (button) window.clutchRecorder.clicks.push([performance.now(), button.id]);
  },
  true,
);

document.addEventListener("clutch", (event) => {
  const recorder = window.clutchRecorder;
  recorder.events.push([performance.now(), event.detail]);
  const message = JSON.parse(event.detail);
  if (message.kind === "started") recorder.nTokens = 0;
  const isFatal = message.kind === "error" && (message.request_id !== null || message.code === "E700");
  if (message.kind === "finished" || isFatal) recorder.nEndings += 1;
  if (message.kind !== "delta") return;
  recorder.nTokens += message.token_ids.length;
  if (recorder.stopAfter > 0 && recorder.nTokens >= recorder.stopAfter) {
    recorder.stopAfter = 0;
    document.getElementById("stop").click();
  }
});
