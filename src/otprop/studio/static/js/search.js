/** The search box: rows whose cells hold a text stand out on the map, and can be labelled one after the other. */
import { getJson, sentenceOf } from "./api.js";
import { byId, count, replace, short } from "./dom.js";

const DELAY = 200;

export class Search {
  /** @param {import("./store.js").Store} store @param {(text: string) => void} queueFound @param {() => void} leave */
  constructor(store, queueFound, leave) {
    this.store = store;
    this.input = byId("search");
    this.timer = 0;
    this.asked = 0;
    this.input.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => void this.find(), DELAY);
    });
    this.input.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape") {
        this.clear();
        leave();
      }
      if (event.key === "Enter" && this.input.value.trim()) {
        clearTimeout(this.timer);
        void this.find();
        queueFound(this.input.value.trim());
        this.input.blur();
      }
    });
    store.on("filter", () => this.describe());
  }

  clear() {
    this.input.value = "";
    this.asked++;
    this.store.setFilter(null);
  }

  async find() {
    const text = this.input.value.trim();
    const number = ++this.asked;
    if (!text) return this.store.setFilter(null);
    try {
      const { ids, total } = await getJson(`/api/search?q=${encodeURIComponent(text)}`);
      if (number === this.asked) this.store.setFilter({ rows: Uint32Array.from(ids), what: `${count(total, "row")} found` });
    } catch (error) {
      if (number === this.asked) replace(byId("filter-text"), sentenceOf(error));
    }
  }

  /** What stands out on the map, with a button that ends it. */
  describe() {
    const { filter, isolated } = this.store;
    const parts = [filter?.what, isolated === null ? null : `only ${short(this.store.className(isolated))}`].filter(Boolean);
    byId("filter").hidden = !parts.length;
    replace(byId("filter-text"), parts.join(", "));
  }
}
