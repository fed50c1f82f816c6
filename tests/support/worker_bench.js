// Drives one engine worker from an otherwise empty page of the site, for the fault matrix: keeps all that it says.
window.bench = {
  events: [],

  start() {
    this.worker?.terminate();
    this.events = [];
    const worker = (this.worker = new Worker("/worker/engine_worker.js", { type: "module" }));
    worker.onmessage = ({ data }) => this.note(JSON.parse(data.json));
    worker.onerror = ({ message }) => this.note({ kind: "worker error", message });
    worker.postMessage({ mark: null });
  },

  note(event) {
    if (event.kind !== "heartbeat") this.events.push(event);
  },

  send(message) {
    this.worker.postMessage({ json: JSON.stringify(message) });
  },
};
