/** In which order rows come: suggested, least sure, a class, a search, the lasso, like no class, doubtful labels, the unknown pile. */
import { sentenceOf } from "./api.js";
import { byId, count, h, replace } from "./dom.js";
import { say } from "./notices.js";

/**
 * @typedef {import("./types.js").Order} Order
 * @typedef {import("./queue.js").Queue} Queue
 */

export class Orders {
  /**
   * @param {import("./store.js").Store} store
   * @param {Queue} queue
   * @param {import("./search.js").Search} search
   * @param {import("./outbox.js").Outbox} outbox
   * @param {() => void} changed
   */
  constructor(store, queue, search, outbox, changed) {
    this.changed = changed;
    this.store = store;
    this.queue = queue;
    this.search = search;
    this.outbox = outbox;
    this.select = byId("order");
    this.classSelect = byId("order-class");
    /** Whether the order is chosen with keys: then the focus stays until Enter or Escape. */
    this.byKey = false;
    this.select.addEventListener("keydown", () => { this.byKey = true; });
    this.select.addEventListener("pointerdown", () => { this.byKey = false; });
    this.select.addEventListener("change", () => this.chosen(this.select.value));
    this.classSelect.addEventListener("change", () => void this.change("class", this.classSelect.value));
    store.on("state", () => this.render());
    store.on("classes", () => this.renderClasses());
  }

  /** @param {Order} order */
  chosen(order) {
    if (!this.byKey) this.select.blur();
    if (order === "class" && this.classSelect.value) return void this.change("class", this.classSelect.value);
    if (order === "class") {
      this.select.value = this.queue.order;
      return say("There is no class yet. Press n to add one.");
    }
    if (order === "search" && !this.search.input.value.trim()) {
      this.select.value = this.queue.order;
      this.search.input.focus();
      return say("Type a text to search for, then press Enter.");
    }
    return void this.change(order, order === "search" ? this.search.input.value.trim() : "");
  }

  /** @param {Order} order @param {string} parameter */
  async change(order, parameter) {
    const pending = this.outbox.entries.flatMap(({ path, body }) => (path === "/api/label" ? body.rows : []));
    try {
      await this.queue.setOrder(order, parameter, pending);
      this.changed();
    } catch (error) {
      say(sentenceOf(error), "error");
    }
    this.render();
  }

  renderClasses() {
    const chosen = this.classSelect.value;
    replace(this.classSelect, ...this.store.classes.map(({ id, name }) => h("option", { value: id }, name)));
    const first = this.store.classes[0]?.id ?? "";
    this.classSelect.value = this.store.classes.some(({ id }) => String(id) === chosen) ? chosen : String(first);
  }

  render() {
    const { order } = this.queue;
    const { issues, unknown, novel } = this.store.state;
    if (this.select.value !== order) this.select.value = order;
    this.classSelect.hidden = order !== "class";
    const lasso = this.select.querySelector("[value=lasso]");
    lasso.disabled = !this.queue.lasso.length;
    replace(this.select.querySelector("[value=issues]"), issues ? `Doubtful labels (${issues})` : "Doubtful labels");
    replace(this.select.querySelector("[value=unknown]"), unknown ? `Unknown pile (${unknown})` : "Unknown pile");
    replace(this.select.querySelector("[value=novel]"), novel.rows ? `None of these? (${novel.rows})` : "None of these?");
    const strange = byId("novel");
    strange.hidden = !novel.share || !novel.rows || order === "novel";
    replace(strange, `${novel.rows} like no class`);
    strange.onclick = () => void this.change("novel", "");
    const doubts = byId("doubts");
    doubts.hidden = !issues || order === "issues";
    replace(doubts, `${count(issues, "doubtful label")}`);
    doubts.onclick = () => void this.change("issues", "");
  }
}
