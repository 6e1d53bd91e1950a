/** What happened, in a line that screen readers announce, and notices that stay until they are dealt with. */
import { byId, h, replace } from "./dom.js";

/** Say what happened. @param {string} sentence @param {"plain"|"error"} [kind] */
export function say(sentence, kind = "plain") {
  const line = byId("said");
  line.dataset.kind = kind;
  line.textContent = sentence;
}

/**
 * A notice with things to do about it; it replaces an earlier one.
 * @param {string} kind
 * @param {string} sentence
 * @param {{name: string, act: () => void}[]} actions
 */
export function notice(kind, sentence, actions = []) {
  const close = h("button", { class: "quiet", type: "button", "aria-label": "Dismiss", click: () => clearNotice(kind) }, "×");
  const buttons = actions.map(({ name, act }) =>
    h("button", { type: "button", click: () => { act(); clearNotice(kind); } }, name));
  replace(byId("notices"), h("div", { class: "notice", "data-notice": kind }, h("p", {}, sentence), h("span", {}, ...buttons, close)));
}

/** @param {string} kind */
export function clearNotice(kind) {
  document.querySelector(`[data-notice="${kind}"]`)?.remove();
}

/**
 * The bar at the top of the page that says that the server is gone or refuses.
 * @param {string} sentence empty: all is well
 */
export function alarm(sentence) {
  const bar = byId("alarm");
  bar.hidden = !sentence;
  if (bar.textContent !== sentence) replace(bar, sentence);
}
