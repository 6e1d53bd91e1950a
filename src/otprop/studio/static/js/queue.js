/** Which row is shown, and which come next. The next rows are fetched ahead, so that a key press never waits. */
import { getJson } from "./api.js";
import { pictureAddress } from "./pictures.js";
import { SOURCE } from "./store.js";

/**
 * @typedef {import("./types.js").RowDetail} RowDetail
 * @typedef {import("./types.js").QueueEntry} QueueEntry
 * @typedef {import("./types.js").Order} Order
 * @typedef {import("./store.js").Store} Store
 */

const WANTED = 24; // rows asked for at once
const LOW = 12; // ask again when fewer are left
const AHEAD = 8; // rows whose details are fetched ahead
const READY = 3; // rows whose details are here before an order replaces another
const AT_ONCE = 2; // requests for details at a time: a browser has six connections for everything
const MOST = 200; // rows that the server sends at most
const RETRY = 1000; // milliseconds without requests after one that failed
const KEPT = 400; // details kept

export class Queue {
  /** @param {Store} store @param {() => void} changed */
  constructor(store, changed) {
    this.store = store;
    this.changed = changed;
    /** @type {Order} */
    this.order = "suggest";
    this.parameter = "";
    /** @type {QueueEntry[]} */
    this.entries = [];
    this.total = 0;
    /** @type {QueueEntry|null} */
    this.current = null;
    /** @type {QueueEntry[]} */
    this.history = [];
    /** Rows dealt with in this order. @type {Set<number>} */
    this.handled = new Set();
    /** @type {Map<number, RowDetail>} */
    this.details = new Map();
    /** Rows whose details are older than the newest result. @type {Set<number>} */
    this.stale = new Set();
    /** Rows whose details are asked for. @type {Map<number, Promise<void>>} */
    this.underway = new Map();
    this.asked = 0;
    this.asking = false;
    this.complete = false;
    /** @type {Uint32Array} */
    this.lasso = new Uint32Array(0);
    /** Rows of the search. @type {number[]} */
    this.found = [];
    /** Rows of the search that were looked at. @type {Set<number>} */
    this.passed = new Set();
    /** The row whose explanation is waited for, -1 for none. */
    this.waited = -1;
    this.pauseTimer = 0;
    /** @type {AbortController|null} */
    this.waiting = null;
  }

  /** @param {Order} order @param {string} [parameter] class id or text @param {number[]} [pending] rows labelled but not saved yet */
  async setOrder(order, parameter = "", pending = []) {
    this.order = order;
    this.parameter = parameter;
    this.asked++; // an answer that is still under way belongs to the order before
    this.asking = false;
    this.handled = new Set(pending);
    this.entries = [];
    this.total = 0;
    this.current = null;
    this.history = [];
    this.passed = new Set();
    this.found = [];
    this.changed();
    if (order === "search") {
      const { ids } = await getJson(`/api/search?q=${encodeURIComponent(parameter)}`);
      if (this.order !== order || this.parameter !== parameter) return;
      this.found = ids;
    }
    await this.ask();
  }

  /** Look at the next row of the search, after the last at the first one again. */
  nextMatch() {
    if (this.current) this.passed.add(this.current.id);
    if (this.entries.length) return this.advance();
    this.passed = new Set();
    return void this.ask().then(() => this.current && this.entries.length && this.advance());
  }

  address() {
    const query = new URLSearchParams({ order: this.order, n: String(Math.min(MOST, WANTED + this.handled.size)) });
    if (this.order === "class") query.set("class", this.parameter);
    return `/api/queue?${query}`;
  }

  /** Ask for the rows to come; the row that is shown stays. */
  async ask() {
    const number = ++this.asked;
    this.asking = true;
    if (!this.current) this.changed(); // which says that rows are looked for
    try {
      const answer = this.order === "lasso" ? this.lassoAnswer() : this.order === "search" ? this.searchAnswer() : await getJson(this.address());
      // asked again once details are here: meanwhile rows may have been labelled, or passed in a search
      const wanted = (/** @type {QueueEntry} */ { id }) => !this.handled.has(id) && !this.passed.has(id) && id !== this.current?.id;
      // the rows that were to come stay until the new ones can be shown without waiting
      const first = this.current && this.entries.length ? answer.rows.filter(wanted).slice(0, READY) : [];
      await Promise.all(first.map((/** @type {QueueEntry} */ { id }) => this.fresh(id)));
      if (number !== this.asked) return;
      this.total = answer.total;
      this.entries = answer.rows.filter(wanted);
      this.complete = answer.rows.length >= answer.total;
    } finally {
      if (number === this.asked) this.asking = false;
    }
    if (!this.current) this.advance();
    else this.changed();
    this.fetchAhead();
  }

  lassoAnswer() {
    const { confidence, sources } = this.store;
    const rows = [...this.lasso].filter((row) => !this.handled.has(row));
    const sureness = (/** @type {number} */ row) => (sources[row] === SOURCE.propagated ? confidence[row] : 256);
    rows.sort((a, b) => sureness(a) - sureness(b) || a - b);
    return { total: rows.length, rows: rows.slice(0, WANTED).map((id) => ({ id, reason: "in the lasso" })) };
  }

  /** The rows of the search that no person has labelled and that were not looked at yet, in their order. */
  searchAnswer() {
    const { sources } = this.store;
    const free = this.found.filter((row) => !this.handled.has(row) && (sources[row] === SOURCE.none || sources[row] === SOURCE.propagated));
    const rows = free.filter((row) => !this.passed.has(row)).slice(0, WANTED);
    return { total: free.length, rows: rows.map((id) => ({ id, reason: "search" })) };
  }

  /** Show the next row. */
  advance() {
    if (this.current) this.history.push(this.current);
    this.current = this.entries.shift() ?? null;
    this.changed();
    this.fetchAhead();
    if (this.entries.length < LOW && !this.complete && !this.asking) void this.ask();
  }

  /** A row was labelled or skipped. @param {number[]} rows */
  handle(rows) {
    const gone = new Set(rows);
    for (const row of rows) this.handled.add(row);
    this.entries = this.entries.filter(({ id }) => !gone.has(id));
    this.total = Math.max(0, this.total - rows.length);
    if (this.current && gone.has(this.current.id)) this.advance();
    else this.changed();
  }

  /** Show a row out of order; the one that was shown comes next. @param {number} id @param {string} reason @param {string} [note] */
  show(id, reason, note) {
    if (this.current?.id === id) return;
    if (this.current) this.entries.unshift(this.current);
    this.entries = this.entries.filter((entry) => entry.id !== id);
    this.current = { id, reason, note };
    this.changed();
    this.fetchAhead();
  }

  /** Show the row that was shown before. */
  back() {
    const entry = this.history.pop();
    if (!entry) return false;
    if (this.current) this.entries.unshift(this.current);
    this.current = entry;
    this.changed();
    this.fetchAhead();
    return true;
  }

  /** These rows can come again: their change was undone. @param {number[]} rows */
  release(rows) {
    for (const row of rows) this.handled.delete(row);
    this.complete = false;
  }

  /** New labels were propagated: details are fetched again, and the rows to come are asked for anew. */
  renew() {
    this.expire([...this.details.keys()]);
    return this.ask();
  }

  /** What was said of these rows has changed: their details are fetched again when they are shown. @param {number[]} rows */
  expire(rows) {
    for (const row of rows) this.stale.add(row);
    this.fetchAhead();
  }

  /** The details of a row as far as they are here. @param {number} id */
  detail(id) {
    return this.details.get(id) ?? null;
  }

  /** Fetch what is missing of the row that is shown and of those to come, in this order. */
  fetchAhead() {
    if (this.pauseTimer) return;
    const coming = this.entries.slice(0, AHEAD).map(({ id }) => id);
    const here = this.current && this.details.get(this.current.id);
    const ids = this.current ? [this.current.id, ...coming] : coming;
    const missing = ids.filter((id) => (!this.details.has(id) || this.stale.has(id)) && !this.underway.has(id));
    for (const id of missing.slice(0, Math.max(0, AT_ONCE - this.underway.size))) void this.fresh(id).then(() => this.fetchAhead());
    if (this.waited !== this.current?.id) this.waiting?.abort();
    if (here && !here.explained && !this.stale.has(here.id) && this.waited !== here.id) void this.fetchExplanation(here.id);
  }

  /** Wait for what the server needs some time for, as long as the row is shown. @param {number} id */
  async fetchExplanation(id) {
    this.waited = id;
    this.waiting = new AbortController();
    try {
      this.details.set(id, await getJson(`/api/row/${id}?wait=1`, this.waiting.signal));
      if (this.current?.id === id) this.changed();
    } catch {
      // another row is shown by now, or the server is gone
    } finally {
      if (this.waited === id) this.waited = -1;
    }
    if (this.stale.has(id)) this.fetchAhead(); // a newer result came meanwhile
  }

  /** Fetch nothing for a while. */
  pause() {
    clearTimeout(this.pauseTimer);
    this.pauseTimer = setTimeout(() => {
      this.pauseTimer = 0;
      this.fetchAhead();
    }, RETRY);
  }

  /** Have the newest details of a row here. @param {number} id @returns {Promise<void>} */
  fresh(id) {
    if (this.details.has(id) && !this.stale.has(id)) return Promise.resolve();
    const found = this.underway.get(id) ?? this.fetchDetail(id).finally(() => this.underway.delete(id));
    this.underway.set(id, found);
    return found;
  }

  /** @param {number} id */
  async fetchDetail(id) {
    this.stale.delete(id);
    try {
      const detail = await getJson(`/api/row/${id}`);
      this.details.delete(id);
      this.details.set(id, detail);
      if (detail.image) new Image().src = pictureAddress(this.store, id, "image"); // into the cache of the browser
      for (const old of this.details.keys()) {
        if (this.details.size <= KEPT) break;
        this.details.delete(old);
      }
      if (this.current?.id === id) this.changed();
    } catch {
      this.pause(); // the server is gone or restarts
    }
  }
}
