/** Pictures of rows. The server makes them; a query that is new at each start keeps those of another table apart. */
import { h } from "./dom.js";

/** @typedef {import("./store.js").Store} Store */

const SMALL = 64; // pixels up to which a picture is shown pixel by pixel

/** @param {Store} store @param {number} row @param {"thumbnail"|"image"} size */
export function pictureAddress(store, row, size) {
  return `/api/${size}/${row}?v=${store.state.start}`;
}

/**
 * The picture of a row; where it cannot be shown, this is said instead.
 * @param {Store} store
 * @param {number} row
 * @param {"thumbnail"|"image"} size
 * @param {import("./dom.js").Attributes} [attributes]
 */
export function picture(store, row, size, attributes = {}) {
  const image = h("img", { alt: `Picture of row ${row + 1}`, decoding: "async", draggable: "false", ...attributes, load: sharpen,
    error: () => image.replaceWith(h("span", { class: "no-picture" }, "no picture")) });
  image.setAttribute("src", pictureAddress(store, row, size));
  return image;
}

/** Show a picture of few pixels as such, since it is enlarged. @param {Event} event */
function sharpen(event) {
  const image = /** @type {HTMLImageElement} */ (event.target);
  image.classList.toggle("pixels", Math.max(image.naturalWidth, image.naturalHeight) <= SMALL);
}

const NOT_TEXT = ["picture", "vote"]; // kinds of columns that are shown elsewhere
const NOT_SHORT = [...NOT_TEXT, "vector"]; // and those that say nothing in a line

/**
 * The cells of a row with their columns, without those that are no text.
 * @param {Store} store
 * @param {string[]} cells
 * @param {boolean} [brief] for a line, where a vector says nothing, nor does the name of a picture that is shown
 */
export function textCells(store, cells, brief = false) {
  return store.state.columns.map(({ name, kind }, at) => ({ name, kind, cell: cells[at] ?? "" }))
    .filter(({ kind }) => !(brief ? NOT_SHORT : NOT_TEXT).includes(kind));
}
