/** Small helpers to build the page. Text always becomes a text node: cells and names are never parsed as markup. */

const LONGEST_NAME = 40; // characters of a name in a sentence
const SVG = "http://www.w3.org/2000/svg";

/**
 * @typedef {Node|string|number|null|undefined|false} Child
 * @typedef {Record<string, string|number|boolean|null|undefined|((event: any) => void)>} Attributes
 */

/**
 * @param {Element} node
 * @param {Attributes} attributes
 * @param {(Child|Child[])[]} children
 */
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  append(node, children);
}

/**
 * @param {Element} node
 * @param {(Child|Child[])[]} children
 */
export function append(node, children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
}

/**
 * An HTML element; an attribute that is a function listens to the event of that name.
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {...(Child|Child[])} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  fill(node, attributes, children);
  return node;
}

/**
 * An SVG element.
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {...(Child|Child[])} children
 * @returns {SVGElement}
 */
export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  fill(node, attributes, children);
  return node;
}

/**
 * The element with an id; a missing one is a mistake of the page.
 * @param {string} id
 * @returns {any}
 */
export function byId(id) {
  const node = document.getElementById(id);
  if (!node) throw new Error(`The page has no element #${id}`);
  return node;
}

/**
 * Replace the children of a node; the same text as before is left alone, since every change costs a layout.
 * @param {Element} node
 * @param {...(Child|Child[])} children
 */
export function replace(node, ...children) {
  const [only] = children;
  if (children.length === 1 && typeof only === "string") {
    if (node.firstElementChild || node.textContent !== only) node.textContent = only;
    return;
  }
  node.replaceChildren();
  append(node, children);
}

/**
 * Replace the children of a node unless they would be the same: a button under the pointer or with the focus stays.
 * @param {Element & {dataset?: DOMStringMap}} node
 * @param {unknown} key what the children are made from
 * @param {() => (Child|Child[])[]} make
 */
export function refresh(node, key, make) {
  const text = JSON.stringify(key);
  if (keys.get(node) === text) return;
  keys.set(node, text);
  const focused = node.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement).dataset.focus : undefined;
  replace(node, ...make());
  if (focused) /** @type {HTMLElement|null} */ (node.querySelector(`[data-focus="${CSS.escape(focused)}"]`))?.focus();
}

/** @type {WeakMap<Element, string>} */
const keys = new WeakMap();

/** A number with thin spaces between thousands. @param {number} number */
export function grouped(number) {
  return String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** "1 row", "2 rows". @param {number} number @param {string} noun @param {string} [plural] */
export function count(number, noun, plural = `${noun}s`) {
  return `${grouped(number)} ${number === 1 ? noun : plural}`;
}

export const CONFIDENCE = "Confidence: how often labels like this one are right, learnt from held-out labels";
export const PROBABILITY = "Probability of the class for this row; for the proposed class, its confidence";

/** A name as it fits into a sentence. @param {string} name */
export function short(name) {
  return name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1).trimEnd()}…` : name;
}

/** A share as a percentage, with one decimal below ten per cent. @param {number} share */
export function percent(share) {
  const value = 100 * share;
  if (value >= 99.95) return "100\u202f%";
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)}\u202f%`;
}

/** A probability, never shown as certain unless it is. @param {number} value */
export function probability(value) {
  if (value > 0.99 && value < 1) return "> 99\u202f%";
  if (value > 0 && value < 0.01) return "< 1\u202f%";
  return `${Math.round(100 * value)}\u202f%`;
}
