/** Draws the rows on a 2D canvas, where there is no WebGL2. */
import { RAMP, markerOf, rgb, tracePath } from "../palette.js";
import { drawPixels } from "./raster.js";
import { FADED, SELECTED } from "./shaders.js";

/**
 * @typedef {import("./gl.js").Scene} Scene
 * @typedef {import("../store.js").Store} Store
 */

export const SHAPED = 20_000; // up to so many rows in the window have shapes, more are small squares
const CLOSE = 3; // zoom from which it is worth the time to count them
const MOST_RINGS = 3000; // of labelled and selected rows
const STEPS = 32; // colours of confidence

const STOPS = RAMP.map(rgb);
const SHADES = Array.from({ length: STEPS + 1 }, (_, step) => {
  const at = step / STEPS * (STOPS.length - 1), low = Math.min(Math.floor(at), STOPS.length - 2);
  return `rgb(${STOPS[low].map((part, k) => Math.round(part + (at - low) * (STOPS[low + 1][k] - part))).join(",")})`;
});

export class PlainRenderer {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    const context = canvas.getContext("2d", { willReadFrequently: true }); // drawn by the processor, pixel by pixel
    if (!context) throw new Error("no 2D canvas");
    this.context = context;
    this.canvas = canvas;
    this.xy = new Float32Array(0);
    this.order = new Uint32Array(0);
    /** @type {Store|null} */
    this.store = null;
    this.labelled = new Uint32Array(0);
    /** @type {ImageData|null} */
    this.picture = null;
  }

  /** @param {Float32Array} xy @param {Uint32Array} order */
  setGeometry(xy, order) {
    this.xy = xy;
    this.order = order;
  }

  /** @param {Store} store @param {Uint32Array} labelled */
  setRows(store, labelled) {
    this.store = store;
    this.labelled = labelled;
  }

  /** @param {Store} store @param {number[]} rows @param {Uint32Array} labelled */
  patchRows(store, rows, labelled) {
    this.setRows(store, labelled);
  }

  setFlags() {}

  /** @param {Uint32Array} rows */
  setLabelled(rows) {
    this.labelled = rows;
  }

  setClasses() {}

  /** @param {Scene} scene */
  draw(scene) {
    const { context, canvas, store } = this;
    const ratio = canvas.width / scene.view.width;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, scene.view.width, scene.view.height);
    if (!store || !store.labels.length) return;
    const shown = this.order.subarray(0, Math.max(1, Math.round(this.order.length * scene.part)));
    const inside = this.order.length > SHAPED && scene.view.zoom > CLOSE ? this.inside(scene.view, shown) : shown;
    const radius = scene.view.radius(this.order.length);
    if (inside.length > SHAPED) this.drawPixels(scene, store, inside);
    else this.drawShapes(scene, store, inside, radius);
    this.rings(scene, store, Math.max(radius, 2.5));
  }

  /** Rows that are in the window. @param {import("./view.js").View} view @param {Uint32Array} rows */
  inside(view, rows) {
    const [left, bottom] = view.toMap(0, view.height), [right, top] = view.toMap(view.width, 0);
    const { xy } = this;
    return rows.filter((row) => xy[2 * row] >= left && xy[2 * row] <= right && xy[2 * row + 1] >= bottom && xy[2 * row + 1] <= top);
  }

  /** @param {Scene} scene @param {Store} store @param {Uint32Array} rows */
  drawPixels(scene, store, rows) {
    const { width, height } = this.canvas;
    if (this.picture?.width !== width || this.picture.height !== height) this.picture = new ImageData(width, height);
    const pixels = new Uint32Array(this.picture.data.buffer);
    pixels.fill(0);
    drawPixels(pixels, width, height, this.xy, rows, scene, store);
    this.context.putImageData(this.picture, 0, 0);
  }

  /** @param {Scene} scene @param {Store} store @param {Uint32Array} shown @param {number} radius */
  drawShapes(scene, store, shown, radius) {
    const groups = this.groups(scene, store, shown);
    const faded = groups.get("faded");
    if (faded) this.fill(scene, faded, scene.colors.faint, 0, 0.8 * radius, 0.5);
    groups.delete("faded");
    for (const [key, rows] of groups) {
      const [color, shape] = key.split("|");
      this.fill(scene, rows, color, Number(shape), radius, color === scene.colors.none ? 0.7 : 1);
    }
  }

  /** @param {Scene} scene @param {Store} store @param {Uint32Array} shown @returns {Map<string, number[]>} */
  groups(scene, store, shown) {
    /** @type {Map<string, number[]>} */
    const groups = new Map();
    for (const row of shown) {
      const key = this.style(scene, store, row);
      const group = groups.get(key);
      if (group) group.push(row);
      else groups.set(key, [row]);
    }
    return groups;
  }

  /** Colour and shape of a row, "faded" if it stands back. @param {Scene} scene @param {Store} store @param {number} row */
  style(scene, store, row) {
    const { colors } = scene;
    const label = store.labels[row], source = store.sources[row];
    const labelled = label !== store.none && store.rounds[row] <= scene.round;
    if (scene.flags[row] & FADED) return "faded";
    if (scene.isolated !== null && (!labelled || label !== scene.isolated)) return "faded";
    if (scene.coloring === 2) {
      const index = labelled || source === 4 ? source : 0;
      return `${[colors.none, colors.ink, colors.here, colors.propagated, colors.edge][index]}|0`;
    }
    if (scene.coloring === 3) return `${SHADES[Math.round((1 - store.novelty[row] / 255) * STEPS)]}|0`;
    if (!labelled) return `${colors.none}|0`;
    if (scene.coloring === 1) return `${SHADES[Math.round(store.confidence[row] / 255 * STEPS)]}|0`;
    const marker = markerOf(label);
    return `${marker.color}|${marker.shape}`;
  }

  /**
   * @param {Scene} scene @param {Iterable<number>} rows @param {string} color @param {number} shape
   * @param {number} radius @param {number} alpha
   */
  fill({ view }, rows, color, shape, radius, alpha) {
    const { context } = this;
    context.fillStyle = color;
    context.globalAlpha = alpha;
    context.beginPath();
    for (const row of rows) {
      const [x, y] = view.toPage(this.xy[2 * row], this.xy[2 * row + 1]);
      if (x < -9 || y < -9 || x > view.width + 9 || y > view.height + 9) continue;
      tracePath(context, shape, x, y, radius);
    }
    context.fill();
    context.globalAlpha = 1;
  }

  /** @param {Scene} scene @param {Store} store @param {number} radius */
  rings(scene, store, radius) {
    const { context } = this;
    context.lineWidth = 1.6;
    if (this.labelled.length > MOST_RINGS) return; // a large selection has its colour
    for (const row of this.labelled) {
      const key = this.style(scene, store, row);
      if (key === "faded") continue;
      const [color, shape] = key.split("|");
      const [x, y] = scene.view.toPage(this.xy[2 * row], this.xy[2 * row + 1]);
      context.beginPath();
      tracePath(context, Number(shape), x, y, radius);
      context.fillStyle = color;
      context.fill();
      const selected = scene.flags[row] & SELECTED || store.sources[row] === 2;
      context.strokeStyle = selected ? scene.colors.link : scene.colors.ink;
      context.beginPath();
      tracePath(context, Number(shape), x, y, radius + 0.8);
      context.stroke();
    }
  }
}
