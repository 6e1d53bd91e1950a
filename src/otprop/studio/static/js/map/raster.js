/** Many points as small squares, pixel by pixel: without a graphics card, the fastest way to draw them. */
import { RAMP, markerOf, rgb } from "../palette.js";
import { FADED, SELECTED } from "./shaders.js";

/**
 * @typedef {import("./gl.js").Scene} Scene
 * @typedef {import("../store.js").Store} Store
 */

const OPAQUE = 255, HALF = 128;

/** A colour as the 32 bits of a pixel. @param {[number, number, number]|number[]} color @param {number} alpha */
function pixel([red, green, blue], alpha) {
  return ((alpha << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** Colours of confidence 0 to 255. */
const SHADES = Uint32Array.from({ length: 256 }, (_, step) => {
  const at = step / 255 * (RAMP.length - 1), low = Math.min(Math.floor(at), RAMP.length - 2);
  const [from, to] = [rgb(RAMP[low]), rgb(RAMP[low + 1])];
  return pixel(from.map((part, k) => Math.round(part + (at - low) * (to[k] - part))), OPAQUE);
});

/**
 * @param {Uint32Array} pixels of a picture `width` wide
 * @param {number} width
 * @param {number} height
 * @param {Float32Array} xy
 * @param {Uint32Array} rows from below to above
 * @param {Scene} scene
 * @param {Store} store
 */
export function drawPixels(pixels, width, height, xy, rows, scene, store) {
  const { view, colors } = scene;
  const ratio = width / view.width, scale = view.scale * ratio;
  const side = Math.max(1, Math.round(2 * view.radius(xy.length / 2) * ratio));
  const left = width / 2 - view.x * scale - side / 2, top = height / 2 + view.y * scale - side / 2;
  const paint = painter(scene, store);
  const faint = pixel(rgb(colors.faint), HALF);
  for (let pass = scene.anyFaded ? 0 : 1; pass < 2; pass++) {
    for (let at = 0; at < rows.length; at++) {
      const row = rows[at];
      const x = Math.round(left + xy[2 * row] * scale), y = Math.round(top - xy[2 * row + 1] * scale);
      if (x < 0 || y < 0 || x + side > width || y + side > height) continue;
      const color = paint(row);
      if ((color === 0) !== (pass === 0)) continue;
      for (let line = y * width + x, last = line + side * width; line < last; line += width) {
        for (let dx = 0; dx < side; dx++) pixels[line + dx] = color || faint;
      }
    }
  }
}

/** The pixel of a row, 0 if it stands back. @param {Scene} scene @param {Store} store @returns {(row: number) => number} */
function painter({ flags, isolated, round, coloring, colors }, store) {
  const { labels, confidence, sources, rounds, novelty, none } = store;
  const classes = Uint32Array.from(store.state.classes, ({ id }) => pixel(markerOf(id).rgb, OPAQUE));
  const bySource = [colors.none, colors.ink, colors.here, colors.propagated, colors.edge].map((hex) => pixel(rgb(hex), OPAQUE));
  const selected = pixel(rgb(colors.link), OPAQUE);
  return (row) => {
    const label = labels[row], labelled = label !== none && rounds[row] <= round;
    if (flags[row] & FADED || (isolated !== null && (!labelled || label !== isolated))) return 0;
    if (flags[row] & SELECTED) return selected;
    if (coloring === 2) return bySource[labelled || sources[row] === 4 ? sources[row] : 0];
    if (coloring === 3) return SHADES[255 - novelty[row]];
    if (!labelled) return bySource[0];
    return coloring === 1 ? SHADES[confidence[row]] : classes[label];
  };
}
