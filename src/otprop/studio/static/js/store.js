/** What the page knows: the server's state, one number a row, and what is chosen on the map. */
import { getBinary } from "./api.js";

/**
 * @typedef {import("./types.js").State} State
 * @typedef {"state"|"rows"|"patch"|"selection"|"filter"|"classes"} Topic
 * @typedef {{rows: number[], label: number, source: number, revision: number|null}} Overlay
 */

export const SOURCE = { none: 0, given: 1, here: 2, propagated: 3, unknown: 4 };
export const SOURCE_NAMES = ["no label", "given in the file", "labelled here", "propagated", "unknown pile"];

const MOST_PATCHED = 500; // rows sent to the map one by one; with more, all are sent

export class Store {
  constructor() {
    /** @type {State} */
    this.state = /** @type {any} */ (null);
    /** @type {Uint8Array|Uint16Array} */
    this.labels = new Uint8Array(0);
    this.confidence = new Uint8Array(0);
    this.sources = new Uint8Array(0);
    this.rounds = new Uint8Array(0);
    this.novelty = new Uint8Array(0);
    this.changed = new Uint32Array(0);
    /** Rows of the lasso. @type {Uint32Array|null} */
    this.selection = null;
    /** The class that is isolated on the map. @type {number|null} */
    this.isolated = null;
    /** Rows to show among all others: found by a search, or changed. @type {{rows: Uint32Array, what: string}|null} */
    this.filter = null;
    /** Revision up to which `labels` is known to be right. */
    this.known = -1;
    /** Revision of the arrays as they were fetched last. */
    this.fetched = -1;
    /** Own changes that the fetched arrays may not hold yet. @type {Overlay[]} */
    this.overlays = [];
    /** @type {Map<Topic, (() => void)[]>} */
    this.listeners = new Map();
    this.fetching = false;
    this.again = false;
    /** The rows that an event "patch" is about. @type {number[]} */
    this.patched = [];
  }

  /** @param {Topic} topic @param {() => void} listener */
  on(topic, listener) {
    this.listeners.set(topic, [...(this.listeners.get(topic) ?? []), listener]);
  }

  /** @param {Topic} topic */
  emit(topic) {
    for (const listener of this.listeners.get(topic) ?? []) listener();
  }

  /** The number that stands for no class. */
  get none() {
    return this.labels instanceof Uint16Array ? 65535 : 255;
  }

  /** @param {number|null} id */
  className(id) {
    return id === null || id === this.none ? "no class" : this.state.classes[id]?.name ?? `class ${id + 1}`;
  }

  /** The classes to choose from: without those that have lost their last row. */
  get classes() {
    return this.state.classes.filter(({ hidden }) => !hidden);
  }

  /** The class of a row, null for none. @param {number} row */
  labelOf(row) {
    const label = this.labels[row];
    return label === undefined || label === this.none ? null : label;
  }

  /** @param {State} state */
  setState(state) {
    const before = this.state;
    this.state = state;
    const offered = (/** @type {State} */ one) => one.classes.filter(({ hidden }) => !hidden).map(({ name, key }) => `${key} ${name}`).join();
    if (!before || offered(before) !== offered(state)) this.emit("classes");
    this.emit("state");
  }

  /** Fetch the numbers of all rows again; calls during a fetch lead to one more. */
  async fetchRows() {
    if (this.fetching) {
      this.again = true;
      return;
    }
    this.fetching = true;
    try {
      do {
        this.again = false;
        await this.fetchOnce();
      } while (this.again);
    } finally {
      this.fetching = false;
    }
  }

  async fetchOnce() {
    const names = ["labels", "confidence", "sources", "rounds", "changed", "novelty"];
    const found = await Promise.all(names.map((name) => getBinary(`/api/${name}`)));
    const [labels, confidence, sources, rounds, changed, novelty] = found.map((one) => /** @type {any} */ (one));
    const wide = labels.buffer.byteLength > sources.buffer.byteLength; // two bytes a row from 251 classes on
    this.labels = wide ? new Uint16Array(labels.buffer) : new Uint8Array(labels.buffer);
    this.confidence = new Uint8Array(confidence.buffer);
    this.sources = new Uint8Array(sources.buffer);
    this.rounds = new Uint8Array(rounds.buffer);
    this.changed = new Uint32Array(changed.buffer);
    this.novelty = novelty.buffer.byteLength ? new Uint8Array(novelty.buffer) : new Uint8Array(this.sources.length); // not known: 0
    this.known = Math.max(this.known, labels.revision);
    this.fetched = labels.revision;
    this.overlays = this.overlays.filter((one) => one.revision === null || one.revision > labels.revision);
    for (const one of this.overlays) this.write(one);
    this.emit("rows");
  }

  /**
   * Show an own change at once, before the server has it.
   * @param {number[]} rows
   * @param {number|null} label
   * @param {number} source
   * @returns {Overlay}
   */
  overlay(rows, label, source) {
    const one = { rows, label: label ?? this.none, source, revision: null };
    this.overlays.push(one);
    this.write(one);
    this.patched = rows;
    this.emit(rows.length > MOST_PATCHED ? "rows" : "patch");
    return one;
  }

  /** @param {Overlay} one */
  write({ rows, label, source }) {
    const certain = source === SOURCE.here ? 255 : 0;
    for (const row of rows) {
      this.labels[row] = label;
      this.sources[row] = source;
      this.confidence[row] = certain;
      this.rounds[row] = certain ? 0 : 255;
    }
  }

  /** Whether a person gave the row its label. @param {number} row */
  byPerson(row) {
    return this.sources[row] === SOURCE.given || this.sources[row] === SOURCE.here;
  }

  /** Forget own changes of these rows: they were refused or undone. @param {number[]} rows */
  dropOverlays(rows) {
    const gone = new Set(rows);
    this.overlays = this.overlays.filter((one) => !one.rows.some((row) => gone.has(row)));
  }

  /** @param {Uint32Array|null} rows */
  select(rows) {
    this.selection = rows && rows.length ? rows : null;
    this.emit("selection");
  }

  /** @param {number|null} id */
  isolate(id) {
    this.isolated = this.isolated === id ? null : id;
    this.emit("filter");
  }

  /** @param {{rows: Uint32Array, what: string}|null} filter */
  setFilter(filter) {
    this.filter = filter;
    this.emit("filter");
  }
}
