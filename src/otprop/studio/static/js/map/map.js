/** The map of all rows: what is drawn, and when. */
import { themeColors } from "../palette.js";
import { SOURCE } from "../store.js";
import { GlRenderer } from "./gl.js";
import { Overlay } from "./overlay.js";
import { PlainRenderer, SHAPED } from "./plain.js";
import { FADED, SELECTED } from "./shaders.js";
import { SpatialIndex } from "./spatial.js";
import { View } from "./view.js";

/** @typedef {import("../store.js").Store} Store */

export const COLORINGS = ["label", "confidence", "source", "novelty"];
const SLOW = 45, SMALLEST_PART = 0.05; // milliseconds of a frame; share of the rows drawn while the map moves
const SOON = 200, LATEST = 1000; // milliseconds by which the map follows the row; the most while keys are pressed
const REST = 180; // milliseconds without movement after which all rows are drawn again
const LAST_ROUND = 254; // 255 is a row without label

export class RowMap {
  /** @param {HTMLElement} host @param {Store} store */
  constructor(host, store) {
    this.host = host;
    this.store = store;
    this.view = new View();
    this.xy = new Float32Array(0);
    this.order = new Uint32Array(0);
    this.flags = new Uint8Array(0);
    /** @type {SpatialIndex|null} */
    this.index = null;
    /** Rows drawn above all others. */
    this.labelled = new Uint32Array(0);
    this.wide = false;
    this.coloring = 0;
    this.round = LAST_ROUND;
    this.part = 1;
    this.visible = false;
    this.moving = false;
    this.frame = 0;
    this.lastFrame = 0;
    this.restTimer = 0;
    this.soonTimer = 0;
    this.soonSince = 0;
    this.colors = themeColors();
    this.makeCanvas(location.hash === "#canvas");
    this.overlay = new Overlay(this);
    this.listen();
  }

  /** Draw with WebGL2, or on a 2D canvas where there is none, or no graphics card and many rows. @param {boolean} plain */
  makeCanvas(plain) {
    this.canvas?.remove();
    const canvas = document.createElement("canvas");
    canvas.className = "points";
    canvas.setAttribute("aria-hidden", "true");
    this.host.prepend(canvas);
    this.canvas = canvas;
    try {
      if (plain) throw new Error("2D canvas wanted");
      this.renderer = new GlRenderer(canvas);
    } catch {
      const second = document.createElement("canvas"); // a canvas keeps its first kind of context
      second.className = "points";
      second.setAttribute("aria-hidden", "true");
      canvas.replaceWith(second);
      this.canvas = second;
      this.renderer = new PlainRenderer(second);
    }
    this.host.dataset.renderer = this.renderer instanceof GlRenderer ? "webgl2" : "canvas";
    this.canvas.addEventListener("webglcontextlost", (event) => {
      event.preventDefault();
      this.makeCanvas(true);
      this.resize();
      this.sendAll();
    });
  }

  listen() {
    new ResizeObserver(() => this.resize()).observe(this.host);
    this.store.on("rows", () => this.sendRows());
    this.store.on("patch", () => this.patch());
    this.store.on("filter", () => this.sendFlags());
    this.store.on("selection", () => this.sendFlags());
    this.store.on("classes", () => {
      this.renderer.setClasses(this.store.state.classes.length);
      this.request();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.colors = themeColors();
      this.request();
    });
  }

  resize() {
    const { clientWidth, clientHeight } = this.host;
    this.visible = clientWidth > 0 && clientHeight > 0;
    if (!this.visible) return;
    const ratio = Math.min(devicePixelRatio || 1, this.order.length > 300_000 ? 1 : 2);
    this.view.width = clientWidth;
    this.view.height = clientHeight;
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    this.overlay.resize();
    this.reveal(this.overlay.current);
    this.drawNow();
  }

  /** @param {Float32Array} xy */
  setGeometry(xy) {
    this.xy = xy;
    const n = xy.length / 2;
    if (this.order.length !== n) {
      this.order = shuffledOrder(n);
      this.flags = new Uint8Array(n);
    }
    this.index = null;
    this.view.setBounds(xy);
    if (n > SHAPED && this.renderer instanceof GlRenderer && this.renderer.software && location.hash !== "#webgl") this.makeCanvas(true);
    this.sendAll();
    this.resize();
  }

  sendAll() {
    this.wide = this.store.labels instanceof Uint16Array;
    this.renderer.setGeometry(this.xy, this.order, this.wide);
    this.renderer.setClasses(this.store.state.classes.length);
    this.sendRows();
    this.sendFlags();
  }

  sendRows() {
    if (!this.order.length || this.store.labels.length < this.order.length) return;
    if (this.wide !== this.store.labels instanceof Uint16Array) return this.sendAll();
    this.labelled = this.emphasised();
    this.renderer.setRows(this.store, this.labelled);
    this.request();
  }

  /** Send the few rows that an own change is about. */
  patch() {
    const { patched } = this.store;
    if (!this.order.length || this.store.labels.length < this.order.length) return;
    const known = new Set(this.labelled);
    this.labelled = Uint32Array.from([...this.labelled, ...patched.filter((row) => !known.has(row))]);
    this.renderer.patchRows(this.store, patched, this.labelled);
    this.requestSoon();
  }

  /** Rows drawn above all others: labelled by a person, or selected. */
  emphasised() {
    const { sources } = this.store;
    /** @type {number[]} */
    const rows = [];
    for (let row = 0; row < this.order.length; row++) {
      if (sources[row] === SOURCE.given || sources[row] === SOURCE.here || this.flags[row] & SELECTED) rows.push(row);
    }
    return Uint32Array.from(rows);
  }

  sendFlags() {
    const { selection, filter } = this.store;
    this.flags.fill(filter ? FADED : 0);
    if (filter) for (const row of filter.rows) this.flags[row] = 0;
    if (selection) for (const row of selection) this.flags[row] |= SELECTED;
    this.renderer.setFlags(this.flags);
    if (this.store.sources.length >= this.order.length) {
      this.labelled = this.emphasised();
      this.renderer.setLabelled(this.labelled);
    }
    this.request();
  }

  /** @param {string} name */
  setColoring(name) {
    this.coloring = COLORINGS.indexOf(name);
    this.request();
  }

  /** Show the labels as they were after a round; null for all. @param {number|null} round */
  setRound(round) {
    this.round = round === null ? LAST_ROUND : round;
    this.request();
  }

  /** Whether a row stands out, and can be found with the pointer. @param {number} row */
  shown(row) {
    if (this.flags[row] & FADED) return false;
    const { isolated, labels } = this.store;
    return isolated === null || labels[row] === isolated;
  }

  getIndex() {
    this.index ??= new SpatialIndex(this.xy);
    return this.index;
  }

  /** @param {number} row @returns {[number, number]} */
  position(row) {
    return this.view.toPage(this.xy[2 * row], this.xy[2 * row + 1]);
  }

  /** Move the map so that a row is in the window. @param {number} row */
  reveal(row) {
    if (!this.visible) return;
    if (row >= 0 && 2 * row < this.xy.length) this.view.reveal(this.xy[2 * row], this.xy[2 * row + 1]);
    this.requestSoon();
  }

  /** The map moves: draw as many rows as is smooth, and all of them once it rests. */
  move() {
    this.moving = true;
    clearTimeout(this.restTimer);
    this.restTimer = setTimeout(() => {
      this.moving = false;
      this.lastFrame = 0;
      this.request();
    }, REST);
    this.request();
  }

  /** Draw when the keys rest: the next row must not wait for the map. */
  requestSoon() {
    const now = performance.now();
    if (!this.soonTimer) this.soonSince = now;
    clearTimeout(this.soonTimer);
    this.soonTimer = setTimeout(() => this.request(), Math.max(0, Math.min(SOON, this.soonSince + LATEST - now)));
  }

  request() {
    clearTimeout(this.soonTimer);
    this.soonTimer = 0;
    if (!this.frame) this.frame = requestAnimationFrame((now) => this.animate(now));
  }

  /** @param {number} now */
  animate(now) {
    this.frame = 0;
    if (this.moving && this.lastFrame) {
      const took = now - this.lastFrame;
      if (took > SLOW) this.part = Math.max(SMALLEST_PART, this.part * 0.6);
      else if (took < SLOW / 2) this.part = Math.min(1, this.part * 1.05);
    }
    this.lastFrame = this.moving ? now : 0;
    this.drawNow();
  }

  drawNow() {
    if (!this.visible || !this.order.length || this.store.labels.length < this.order.length) return;
    this.renderer.draw({
      view: this.view, coloring: this.coloring, round: this.round, isolated: this.store.isolated, flags: this.flags,
      anyFaded: this.store.isolated !== null || this.store.filter !== null, part: this.moving ? this.part : 1, colors: this.colors,
    });
    this.overlay.draw();
    this.host.dataset.drawn = String(Number(this.host.dataset.drawn ?? 0) + 1);
  }
}

/** Rows in an order that looks random: any beginning of it is a sample. @param {number} n */
function shuffledOrder(n) {
  const order = Uint32Array.from({ length: n }, (_, row) => row);
  let seed = 12345;
  for (let at = n - 1; at > 0; at--) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const other = Math.floor(seed / 4294967296 * (at + 1));
    [order[at], order[other]] = [order[other], order[at]];
  }
  return order;
}
