/** The colour and the shape that stand for a class: the same as on the page of `otprop label`. */
import { svg } from "./dom.js";

/** @typedef {import("./types.js").Marker} Marker */

// Okabe and Ito's colours with enough contrast on white and on black, distinct under any colour vision
export const COLORS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"];
export const SHAPES = ["circle", "square", "triangle", "diamond", "wedge", "cross"];
export const RAMP = ["#b8211b", "#dc6f1c", "#d1a32a", "#7ea6b8", "#2b66a5"]; // uncertain to certain
const SHARED = "#8a6d5a"; // of all classes beyond the first 36
export const OWN_MARKERS = COLORS.length * SHAPES.length; // classes that have a marker of their own
const OUTLINES = {
  square: [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
  diamond: [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]],
  triangle: [[0, -1.25], [1.15, 0.9], [-1.15, 0.9]],
  wedge: [[0, 1.25], [1.15, -0.9], [-1.15, -0.9]],
  cross: [[-1.2, -0.7], [-0.5, 0], [-1.2, 0.7], [-0.7, 1.2], [0, 0.5], [0.7, 1.2], [1.2, 0.7], [0.5, 0], [1.2, -0.7],
    [0.7, -1.2], [0, -0.5], [-0.7, -1.2]],
};

/** @param {string} hex @returns {[number, number, number]} */
export function rgb(hex) {
  return [parseInt(hex.slice(1, 3), 16), parseInt(hex.slice(3, 5), 16), parseInt(hex.slice(5, 7), 16)];
}

/**
 * The marker of a class. Two classes share at most one of colour and shape, up to 36 classes.
 * @param {number} id
 * @returns {Marker}
 */
export function markerOf(id) {
  const n = COLORS.length;
  const own = id < OWN_MARKERS;
  const color = own ? COLORS[id % n] : SHARED;
  return { color, rgb: rgb(color), shape: own ? (id % n + Math.floor(id / n)) % SHAPES.length : 0 };
}

/**
 * The outline of a shape around (x, y), for a 2D canvas.
 * @param {CanvasRenderingContext2D} context
 * @param {number} shape
 * @param {number} x
 * @param {number} y
 * @param {number} r
 */
export function tracePath(context, shape, x, y, r) {
  const points = OUTLINES[SHAPES[shape]];
  if (!points) {
    context.moveTo(x + r, y);
    context.arc(x, y, r, 0, 2 * Math.PI);
    return;
  }
  points.forEach(([dx, dy], at) => (at ? context.lineTo(x + r * dx, y + r * dy) : context.moveTo(x + r * dx, y + r * dy)));
  context.closePath();
}

/**
 * The marker of a class as a small drawing beside its name; a hollow circle stands for no class.
 * @param {number|null} id
 * @returns {SVGElement}
 */
export function swatch(id) {
  const { color, shape } = id === null ? { color: "none", shape: 0 } : markerOf(id);
  const points = OUTLINES[SHAPES[shape]];
  const drawn = points
    ? svg("polygon", { points: points.map(([x, y]) => `${8 + 5.2 * x},${8 + 5.2 * y}`).join(" "), fill: color })
    : svg("circle", { cx: 8, cy: 8, r: 5.2, fill: color, stroke: id === null ? "currentColor" : null });
  return svg("svg", { class: "swatch", viewBox: "0 0 16 16", "aria-hidden": "true" }, drawn);
}

/** Colours of the theme that the map needs. @returns {Record<string, string>} */
export function themeColors() {
  const style = getComputedStyle(document.documentElement);
  const names = ["ink", "paper", "well", "faint", "none", "link", "quiet", "here", "propagated", "edge"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}
