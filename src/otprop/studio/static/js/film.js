/** The rounds of the propagation, played like a film. */
import { byId, count, replace } from "./dom.js";

/** @typedef {import("./store.js").Store} Store */

const STEP = 600, WHOLE = 5000; // milliseconds of a round, and of all together

export class Film {
  /** @param {Store} store @param {import("./map/map.js").RowMap} map */
  constructor(store, map) {
    this.store = store;
    this.map = map;
    this.slider = byId("round");
    this.button = byId("play");
    this.timer = 0;
    this.button.addEventListener("click", () => this.toggle());
    this.slider.addEventListener("input", () => {
      this.stop();
      this.show(Number(this.slider.value));
    });
    store.on("state", () => this.setRounds());
    store.on("rows", () => this.describeSoon());
    store.on("patch", () => this.describeSoon());
    this.later = 0;
  }

  setRounds() {
    const last = Math.max(this.store.state.n_rounds, 0);
    if (Number(this.slider.max) === last && !this.slider.disabled) return;
    const atEnd = Number(this.slider.value) >= Number(this.slider.max);
    this.slider.max = String(last);
    if (atEnd) this.slider.value = String(last);
    this.slider.disabled = this.button.disabled = last < 1;
    this.show(Number(this.slider.value));
  }

  toggle() {
    if (this.button.disabled) return;
    if (this.timer) return this.stop();
    if (Number(this.slider.value) >= Number(this.slider.max)) this.show(0);
    replace(this.button, "Pause");
    this.timer = setInterval(() => {
      const next = Number(this.slider.value) + 1;
      this.show(next);
      if (next >= Number(this.slider.max)) this.stop();
    }, Math.min(STEP, WHOLE / Number(this.slider.max)));
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    replace(this.button, "Play rounds");
  }

  /** @param {number} round */
  show(round) {
    this.slider.value = String(round);
    this.map.setRound(round >= Number(this.slider.max) ? null : round);
    this.describe();
  }

  /** Count after what a key press shows is drawn. */
  describeSoon() {
    clearTimeout(this.later);
    this.later = setTimeout(() => this.describe(), 50);
  }

  describe() {
    const last = Number(this.slider.max), round = Number(this.slider.value);
    if (last < 1) return replace(byId("round-text"), "No rounds yet");
    let labelled = 0;
    const { rounds, labels, none } = this.store;
    const limit = round >= last ? 254 : round;
    for (let row = 0; row < rounds.length; row++) if (rounds[row] <= limit && labels[row] !== none) labelled++;
    const text = round === 0 ? "Given labels" : `Round ${round} of ${last}`;
    replace(byId("round-text"), `${text}: ${count(labelled, "row")} labelled`);
    this.slider.setAttribute("aria-valuetext", `${text}, ${labelled} rows labelled`);
  }
}
