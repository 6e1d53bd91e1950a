/** The line at the top: whether everything is saved, and what the propagation does. */
import { byId, count, replace } from "./dom.js";
import { alarm } from "./notices.js";
import { clock } from "./watch.js";

/** @typedef {import("./store.js").Store} Store */

/** With a capital at its beginning. @param {string} text */
function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export class Status {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    /** @type {import("./outbox.js").Condition} */
    this.condition = "idle";
    this.waiting = 0;
    this.sentence = "";
    /** How the events stopped: "gone", "locked", or "" while they come. */
    this.down = "";
    store.on("state", () => this.render());
  }

  /** @param {import("./outbox.js").Condition} condition @param {number} waiting @param {string} sentence */
  sent(condition, waiting, sentence) {
    if (condition === "sending" && !["idle", "sending"].includes(this.condition)) condition = this.condition; // until it is confirmed
    else this.sentence = sentence;
    this.condition = condition;
    this.waiting = waiting;
    this.render();
  }

  /** @param {string} down */
  setDown(down) {
    this.down = down;
    this.render();
  }

  render() {
    this.renderSaved();
    this.renderAlarm();
    if (this.store.state) this.renderPropagation();
  }

  renderSaved() {
    const saved = byId("saved");
    const stuck = this.condition === "gone" || this.condition === "failing" || this.condition === "locked";
    saved.dataset.state = stuck && this.waiting ? "unsaved" : this.waiting ? "saving" : "saved";
    if (stuck && this.waiting) replace(saved, `${count(this.waiting, "change")} not saved`);
    else if (this.waiting) replace(saved, "Saving …");
    else replace(saved, this.store.state?.saved_at ? `Saved ${clock(this.store.state.saved_at)}` : "");
  }

  renderAlarm() {
    const kept = this.waiting ? ` ${count(this.waiting, "change")} not saved yet ${this.waiting === 1 ? "is" : "are"} kept in this browser.` : " Nothing is lost.";
    if (this.down === "locked" || this.condition === "locked") {
      alarm(`otprop studio was restarted. Open the new address from the terminal.${kept}`);
    } else if (this.down === "gone" || this.condition === "gone") {
      alarm(`The server does not answer. Is otprop studio still running in the terminal? This page continues when it is back.${kept}`);
    } else if (this.condition === "failing") {
      const why = this.sentence.startsWith("not saved") ? sentence(this.sentence) : `Not saved: ${this.sentence}`;
      alarm(`${why}${kept} The page will try again.`);
    } else {
      alarm("");
    }
  }

  renderPropagation() {
    const { propagation, notes } = this.store.state;
    const bar = byId("progress"), text = byId("propagation");
    text.dataset.state = propagation.state;
    byId("work").dataset.busy = String(propagation.state === "running");
    bar.style.transform = `scaleX(${propagation.state === "running" ? Math.max(0.03, propagation.done / (propagation.total || 1)) : 0})`;
    if (propagation.state === "running") replace(text, `Propagating: ${propagation.step || "starting"}`);
    else if (propagation.state === "failed") replace(text, sentence(propagation.message || "the propagation failed."));
    else if (propagation.state === "done") replace(text, `Labels are up to date (${(propagation.seconds ?? 0).toFixed(1)} s)`);
    else replace(text, sentence(propagation.message || (propagation.step ? `Preparing: ${propagation.step}` : "Waiting for labels")));
    byId("notes").hidden = !notes.length;
    if (byId("notes").dataset.notes !== notes.join("\n")) {
      byId("notes").dataset.notes = notes.join("\n");
      replace(byId("notes-list"), ...notes.map((note) => Object.assign(document.createElement("li"), { textContent: note })));
      replace(byId("notes-title"), count(notes.length, "note"));
    }
  }
}
