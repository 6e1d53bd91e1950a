/** The cells of the row under the pointer, beside it. */
import { getJson } from "./api.js";
import { byId, h, probability, replace } from "./dom.js";
import { swatch } from "./palette.js";
import { picture, textCells } from "./pictures.js";
import { SOURCE, SOURCE_NAMES } from "./store.js";

const DELAY = 60, KEPT = 2000, MOST_CELLS = 8;

export class Hover {
  /** @param {import("./store.js").Store} store @param {import("./map/map.js").RowMap} map */
  constructor(store, map) {
    this.store = store;
    this.map = map;
    this.box = byId("hover");
    /** @type {Map<number, {cells: string[], image: boolean}>} */
    this.cells = new Map();
    this.row = -1;
    this.timer = 0;
  }

  /** @param {number} row -1 for none @param {number} x @param {number} y */
  show(row, x, y) {
    this.row = row;
    clearTimeout(this.timer);
    this.box.hidden = row < 0;
    if (row < 0) return;
    this.render();
    this.place(x, y);
    if (!this.cells.has(row)) {
      this.timer = setTimeout(() => void this.fetch(row, x, y), DELAY);
    }
  }

  /** @param {number} row @param {number} x @param {number} y */
  async fetch(row, x, y) {
    try {
      const { rows } = await getJson(`/api/cells?ids=${row}`);
      if (this.cells.size > KEPT) this.cells.clear();
      this.cells.set(row, rows[0]);
    } catch {
      return; // the page says elsewhere that the server is gone
    }
    if (this.row !== row) return;
    this.render();
    this.place(x, y);
  }

  render() {
    const { row, store } = this;
    const label = store.labelOf(row), source = store.sources[row];
    const sure = source === SOURCE.propagated ? `, confidence ${probability(store.confidence[row] / 255)}` : "";
    const { cells, image } = this.cells.get(row) ?? { cells: [], image: false };
    const pairs = textCells(store, cells, true).filter(({ cell }) => cell).slice(0, MOST_CELLS);
    replace(this.box, h("p", { class: "inline" }, swatch(label), h("b", {}, label === null ? "no label" : store.className(label)), h("span", {}, `row ${row + 1}`)),
      h("p", { class: "hint" }, `${SOURCE_NAMES[source]}${sure}`),
      image ? picture(store, row, "thumbnail", { alt: "" }) : null,
      h("dl", {}, ...pairs.flatMap(({ name, cell }) => [h("dt", {}, name), h("dd", {}, cell)])));
  }

  /** @param {number} x @param {number} y */
  place(x, y) {
    const { width, height } = this.map.view;
    const [w, tall] = [this.box.offsetWidth, this.box.offsetHeight];
    const left = x + 16 + w > width ? Math.max(4, x - w - 16) : x + 16;
    const top = Math.max(4, Math.min(y + 12, height - tall - 4));
    this.box.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }
}
