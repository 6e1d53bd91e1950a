/** Many pictures at once: select some by key or pointer, and label all of them with one key. */
import { getJson } from "./api.js";
import { byId, count, grouped, h, probability, refresh, replace, short } from "./dom.js";
import { swatch } from "./palette.js";
import { picture, textCells } from "./pictures.js";
import { SOURCE } from "./store.js";

/**
 * @typedef {import("./store.js").Store} Store
 * @typedef {import("./queue.js").Queue} Queue
 * @typedef {{rows: number[], total: number, what: string}} Found
 */

const MOST = 200; // pictures at a time
const LOW = 12; // more are looked for when fewer are left
const STAYS = ["issues", "unknown"]; // orders of rows that a person has judged already
const NAMES = { suggest: "of suggested rows", unsure: "of the least certain rows", search: "in the search results", novel: "of rows like no labelled class", issues: "with a doubtful label", unknown: "on the unknown pile" };

export class Grid {
  /** @param {Store} store @param {Queue} queue @param {(row: number, reason: string) => void} showRow @param {(id: number) => void} choose */
  constructor(store, queue, showRow, choose) {
    this.store = store;
    this.queue = queue;
    this.showRow = showRow;
    this.choose = choose;
    this.host = byId("grid");
    this.open = false;
    /** Rows of a lasso, which are shown instead of those of an order. @type {Uint32Array|null} */
    this.lasso = null;
    /** @type {Found} */
    this.found = { rows: [], total: 0, what: "" };
    /** @type {Map<number, {cells: string[], image: boolean}>} */
    this.cells = new Map();
    /** The row that the keys are at, -1 for none. */
    this.active = -1;
    this.anchor = -1;
    /** Rows that had a label of a person when they were found: they stay. @type {Set<number>} */
    this.judged = new Set();
    this.asked = 0;
    this.source = "";
    this.host.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.onKey(event));
    this.host.addEventListener("click", (/** @type {MouseEvent} */ event) => this.onClick(event));
    this.host.addEventListener("dblclick", (/** @type {MouseEvent} */ event) => this.look(this.rowAt(event)));
    byId("grid-all").addEventListener("click", () => this.selectAll());
    byId("grid-none").addEventListener("click", () => store.select(null));
    store.on("selection", () => this.mark());
    store.on("filter", () => this.follow());
    store.on("rows", () => this.renew());
    store.on("patch", () => this.renew());
    store.on("classes", () => this.renderClasses());
  }

  /** Show the pictures, or the map again. @param {boolean} open */
  toggle(open) {
    this.open = open;
    if (!open) return;
    this.lasso = this.store.selection;
    void this.load();
    this.host.focus();
  }

  /** The order, the class or the lasso changed. */
  follow() {
    const source = this.nameOfSource();
    if (!this.open || source === this.source) return;
    if (this.lasso && !source.startsWith("lasso")) this.lasso = null;
    void this.load();
  }

  nameOfSource() {
    if (this.store.isolated !== null) return `class ${this.store.isolated}`;
    if (this.lasso) return `lasso ${this.lasso.length}`;
    return `${this.queue.order} ${this.queue.parameter}`;
  }

  /** Whether no person has judged a row. @param {number} row */
  free(row) {
    return !this.store.byPerson(row) && this.store.sources[row] !== SOURCE.unknown;
  }

  /** Rows to show: of the class that is isolated, of the lasso, or of the order of the queue. @returns {Promise<Found>} */
  async find() {
    const { store, queue } = this;
    const sureness = (/** @type {number} */ row) => (store.sources[row] === SOURCE.propagated ? store.confidence[row] : 256);
    const free = (/** @type {number} */ row) => this.free(row);
    const known = (/** @type {Iterable<number>} */ rows, /** @type {string} */ what) => {
      const sorted = [...rows].sort((a, b) => sureness(a) - sureness(b) || a - b);
      return { rows: sorted.slice(0, MOST), total: sorted.length, what };
    };
    if (store.isolated !== null) {
      const rows = [];
      for (let row = 0; row < store.labels.length; row++) if (store.labels[row] === store.isolated && free(row)) rows.push(row);
      return known(rows, `labelled ${short(store.className(store.isolated))}, least certain first`);
    }
    if (this.lasso) return known(this.lasso, "in the selection");
    if (queue.order === "lasso") return known([...queue.lasso].filter(free), "in the lasso");
    if (queue.order === "search") return known(queue.found.filter(free), NAMES.search);
    const query = new URLSearchParams({ order: queue.order, n: String(MOST) });
    if (queue.order === "class") query.set("class", queue.parameter);
    const { rows, total } = await getJson(`/api/queue?${query}`);
    const what = queue.order === "class" ? `labelled ${short(store.className(Number(queue.parameter)))}, least certain first` : NAMES[queue.order];
    return { rows: rows.map((/** @type {{id: number}} */ { id }) => id), total, what };
  }

  async load() {
    const number = ++this.asked;
    this.source = this.nameOfSource();
    try {
      const found = await this.find();
      const missing = found.rows.filter((row) => !this.cells.has(row));
      const { rows } = missing.length ? await getJson(`/api/cells?ids=${missing.join(",")}`) : { rows: [] };
      for (const { id, cells, image } of rows) this.cells.set(id, { cells, image });
      if (number !== this.asked) return;
      this.found = found;
      this.judged = new Set(found.rows.filter((row) => !this.free(row)));
      if (!found.rows.includes(this.active)) this.active = this.anchor = found.rows[0] ?? -1;
      this.render();
    } catch {
      // the page says elsewhere that the server is gone
    }
  }

  /** Labels changed: rows that got one leave; the others stay where they are, under the eyes of the person. */
  renew() {
    if (!this.open) return;
    const stays = STAYS.includes(this.queue.order) && this.store.isolated === null && !this.lasso;
    if (stays) return void (this.store.selection ? this.render() : this.load());
    const at = this.found.rows.indexOf(this.active);
    const rows = this.found.rows.filter((row) => this.free(row) || this.judged.has(row));
    this.found = { ...this.found, total: this.found.total - (this.found.rows.length - rows.length), rows };
    if (!rows.includes(this.active)) this.active = this.anchor = rows[Math.min(at, rows.length - 1)] ?? -1;
    if (rows.length < Math.min(LOW, this.found.total) || (!rows.length && !this.lasso)) return void this.load();
    this.render();
  }

  render() {
    const { rows, total, what } = this.found, { store } = this;
    const part = total > rows.length ? `${grouped(rows.length)} of ${grouped(total)} pictures` : count(rows.length, "picture");
    replace(byId("grid-title"), rows.length ? `${part} ${what}. Arrows and Space select, the key of a class labels the selected ones.` : `No picture ${what}. Choose other rows with Shift+O, a class in the list, or a lasso on the map.`);
    const key = rows.map((row) => [row, store.labels[row], store.sources[row], store.confidence[row]]);
    refresh(this.host, [key, store.classes.map(({ name }) => name)], () => rows.map((row) => this.tile(row)));
    byId("grid-all").disabled = !rows.length;
    this.renderClasses();
    this.mark();
  }

  /** @param {number} row */
  tile(row) {
    const { cells, image } = this.cells.get(row) ?? { cells: [], image: false };
    const label = this.store.labelOf(row), sure = this.store.sources[row] === SOURCE.propagated ? ` ${probability(this.store.confidence[row] / 255)}` : "";
    const text = textCells(this.store, cells, true).map(({ cell }) => cell).filter(Boolean).join(" · ");
    const name = label === null ? "no label" : this.store.className(label);
    return h("div", { class: "tile", role: "option", id: `tile-${row}`, "data-row": row, "aria-label": `row ${row + 1}, ${name}${sure}`, title: `row ${row + 1}: ${text}` },
      image ? picture(this.store, row, "thumbnail", { alt: "", loading: "lazy" }) : h("span", { class: "no-picture" }, text || "no picture"),
      h("span", { class: "caption" }, swatch(label), h("bdi", {}, name), h("span", { class: "share" }, sure)));
  }

  /** The classes to choose from where the buttons of the row are not on the screen. */
  renderClasses() {
    if (!this.open) return;
    const { classes } = this.store;
    refresh(byId("grid-classes"), classes.map(({ id, name, key }) => [id, name, key]), () => classes.map(({ id, name }) =>
      h("button", { type: "button", "data-focus": id, click: () => this.choose(id) }, swatch(id), h("bdi", {}, name))));
  }

  /** Show which pictures are selected, and where the keys are. */
  mark() {
    if (!this.open) return;
    const selected = new Set(this.store.selection ?? []);
    for (const tile of this.host.children) {
      const row = Number(/** @type {HTMLElement} */ (tile).dataset.row);
      tile.setAttribute("aria-selected", String(selected.has(row)));
      tile.classList.toggle("active", row === this.active);
    }
    this.host.setAttribute("aria-activedescendant", this.active < 0 ? "" : `tile-${this.active}`);
    byId("grid-none").disabled = !selected.size;
    byId("grid-classes").hidden = !selected.size;
    replace(byId("grid-count"), selected.size ? `${grouped(selected.size)} selected` : "");
  }

  /** @param {number[]} rows */
  select(rows) {
    this.store.select(Uint32Array.from(rows));
  }

  selectAll() {
    this.select(this.found.rows);
  }

  /** @param {number} row */
  flip(row) {
    const selected = new Set(this.store.selection ?? []);
    if (!selected.delete(row)) selected.add(row);
    this.select([...selected]);
  }

  /** Select all pictures from the anchor to a row, beside those selected before. @param {number} row */
  extend(row) {
    const { rows } = this.found, [from, to] = [rows.indexOf(this.anchor), rows.indexOf(row)].sort((a, b) => a - b);
    this.select([...new Set([...(this.store.selection ?? []), ...rows.slice(Math.max(0, from), to + 1)])]);
  }

  /** @param {MouseEvent} event */
  rowAt(event) {
    const tile = /** @type {Element} */ (event.target).closest(".tile");
    return tile ? Number(/** @type {HTMLElement} */ (tile).dataset.row) : -1;
  }

  /** @param {MouseEvent} event */
  onClick(event) {
    const row = this.rowAt(event);
    if (row < 0) return;
    this.active = row;
    if (event.shiftKey) return this.extend(row);
    this.anchor = row;
    return this.flip(row);
  }

  /** Pictures in a line of the grid. */
  get columns() {
    const tiles = [.../** @type {Iterable<HTMLElement>} */ (/** @type {any} */ (this.host.children))];
    const below = tiles.findIndex((tile) => tile.offsetTop > tiles[0].offsetTop);
    return below < 0 ? tiles.length : below;
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { rows } = this.found, at = rows.indexOf(this.active);
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns, Home: -at, End: rows.length - 1 - at };
    const step = steps[event.key];
    if (step === undefined && event.key !== " " && !(event.key === "Enter" && event.shiftKey)) return;
    event.preventDefault();
    event.stopPropagation();
    if (!rows.length) return;
    if (event.key === " ") return this.flip(this.active);
    if (event.key === "Enter") return this.look(this.active);
    const to = at + step;
    if (to < 0 || to >= rows.length) return;
    this.active = rows[to];
    if (event.shiftKey) this.extend(this.active);
    else this.anchor = this.active;
    this.mark();
    byId(`tile-${this.active}`).scrollIntoView({ block: "nearest" });
  }

  /** Show a row in large, beside the grid. @param {number} row */
  look(row) {
    if (row < 0) return;
    this.store.select(null);
    this.showRow(row, "picked among the pictures");
  }
}
