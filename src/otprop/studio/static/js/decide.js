/** The buttons below a row: accept, one for each class, skip, unknown. With a lasso they act on all of its rows. */
import { CONFIDENCE, PROBABILITY, byId, count, grouped, h, probability, refresh } from "./dom.js";
import { swatch } from "./palette.js";
import { SOURCE } from "./store.js";

/**
 * @typedef {import("./store.js").Store} Store
 * @typedef {import("./card.js").Card} Card
 * @typedef {import("./types.js").ClassInfo} ClassInfo
 * @typedef {{choose: (id: number) => void, accept: () => void, keep: () => void, nextMatch: () => void, remove: () => void, unknown: () => void,
 *   skip: () => void, makeClass: () => void, findClass: () => void, clear: () => void, queueLasso: () => void}} Actions
 */

const ALL_SHOWN = 14; // up to so many classes each have a button; of more, the most probable
const SOME_SHOWN = 10;

export class Decide {
  /** @param {Store} store @param {Card} card @param {Actions} actions */
  constructor(store, card, actions) {
    this.store = store;
    this.card = card;
    this.actions = actions;
  }

  render() {
    const { selection } = this.store;
    const dock = byId("decide");
    dock.dataset.mode = selection ? "region" : "row";
    dock.hidden = !selection && !this.card.shownEntry;
    if (dock.hidden) return;
    const detail = this.card.shown, row = this.card.shownEntry?.id ?? -1;
    const shares = new Map(selection ? [] : (detail?.probabilities ?? []).map((one) => [one.class, one.probability]));
    const choices = this.choices(shares).map(({ id, name, key }) => ({ id, name, key, share: shares.get(id) }));
    const here = selection ? null : this.store.byPerson(row) ? this.store.labelOf(row) : null;
    const walking = this.card.queue.order === "search";
    refresh(byId("proposal"), [row, walking, selection?.length, selection?.[0], detail?.issue, detail?.proposal, choices.map(({ name }) => name)],
      () => (selection ? this.region(selection) : this.proposal()));
    refresh(byId("choices"), [choices, here], () => (choices.length ? choices.map((one) => this.choice(one, one.id === here)) :
      [h("p", { class: "hint" }, "There is no class yet. Press n to add one.")]));
    refresh(byId("actions"), [Boolean(selection), this.store.byPerson(row), this.store.sources[row], detail?.issue, this.store.classes.length],
      () => this.others(Boolean(selection), row));
  }

  proposal() {
    const { shown } = this.card;
    if (!shown) return [];
    if (shown.issue && shown.label !== null) {
      const { suggested } = shown.issue;
      return [
        h("button", { type: "button", class: "main", "data-focus": "accept", click: this.actions.accept }, kbd("⏎"), h("span", { class: "verb" }, "Change to"), named(this.store.className(suggested))),
        h("button", { type: "button", click: this.actions.keep }, kbd("k"), h("span", { class: "verb" }, "Keep"), named(this.store.className(shown.label))),
        h("button", { type: "button", click: this.actions.remove }, kbd("x"), "Remove"),
      ];
    }
    const walking = this.card.queue.order === "search"; // Enter goes to the next match, and labels nothing
    const next = walking ? h("button", { type: "button", id: "next-match", "data-focus": "next", click: this.actions.nextMatch }, kbd("⏎"), "Next match") : null;
    if (!shown.proposal) return [next];
    const { class: id, probability: share } = shown.proposal;
    const key = walking ? this.store.state.classes[id]?.key ?? "" : "⏎";
    return [h("button", { type: "button", class: "main", id: "accept", "data-focus": "accept", click: this.actions.accept }, kbd(key), swatch(id),
      named(this.store.className(id)), h("span", { class: "share", title: CONFIDENCE }, `confidence ${probability(share)}`)), next];
  }

  /** @param {Uint32Array} selection */
  region(selection) {
    /** @type {Map<number|null, number>} */
    const counts = new Map();
    let byPerson = 0;
    for (const row of selection) {
      const label = this.store.labelOf(row);
      counts.set(label, (counts.get(label) ?? 0) + 1);
      if (this.store.byPerson(row)) byPerson++;
    }
    const parts = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 5).map(([id, n]) =>
      h("span", { class: "inline" }, swatch(id), h("bdi", {}, id === null ? "no label" : this.store.className(id)), h("span", { class: "share" }, grouped(n))));
    const note = byPerson && byPerson < selection.length ? ` ${grouped(byPerson)} labelled by hand are not changed.` : "";
    return [
      h("p", { class: "region-title" }, h("b", {}, `${count(selection.length, "row")} selected.`), ` Press the key of a class to label them all.${note}`),
      h("p", { class: "composition" }, "Now: ", ...parts),
      h("button", { type: "button", click: this.actions.queueLasso }, "Go through them one by one"),
      h("button", { type: "button", click: this.actions.clear }, kbd("Esc"), "Clear"),
    ];
  }

  /** @param {Map<number, number>} shares @returns {ClassInfo[]} */
  choices(shares) {
    const { classes } = this.store;
    if (classes.length <= ALL_SHOWN) return classes;
    const likely = [...shares].sort((a, b) => b[1] - a[1]).map(([id]) => id);
    const large = [...classes].sort((a, b) => b.given + b.here - a.given - a.here || a.id - b.id).map(({ id }) => id);
    const chosen = [...new Set([...likely, ...large])].slice(0, SOME_SHOWN);
    return chosen.map((id) => this.store.state.classes[id]).filter(Boolean);
  }

  /** @param {{id: number, name: string, key: string|null, share: number|undefined}} one @param {boolean} current */
  choice({ share, ...one }, current) {
    const button = h("button", {
      type: "button", class: "choice", "data-class": one.id, title: one.name, click: () => this.actions.choose(one.id),
      "data-focus": `choice-${one.id}`, "aria-current": current ? "true" : null,
    }, h("i", { class: "fill" }), kbd(one.key ?? ""), swatch(one.id), h("bdi", {}, one.name),
    share === undefined ? null : h("span", { class: "share", title: PROBABILITY }, probability(share)));
    /** @type {HTMLElement} */ (button.firstChild).style.width = `${Math.round(100 * (share ?? 0))}%`;
    return button;
  }

  /** @param {boolean} region @param {number} row */
  others(region, row) {
    const { actions } = this, onPile = this.store.sources[row] === SOURCE.unknown;
    /** @type {[string, string, () => void, boolean][]} */
    const all = [
      ["s", "Skip", actions.skip, !region],
      ["n", "New class", actions.makeClass, true],
      ["Space", "Find class", actions.findClass, this.store.classes.length > ALL_SHOWN],
      ["0", "Unknown", actions.unknown, true],
      ["x", onPile ? "Off the pile" : "Remove label", actions.remove, region || onPile || (this.store.byPerson(row) && !this.card.shown?.issue)],
    ];
    return all.filter(([, , , shown]) => shown).map(([key, name, act]) => h("button", { type: "button", "data-focus": key, click: act }, kbd(key), name));
  }
}

/** The key of an action, shown on its button. @param {string} key */
export function kbd(key) {
  return h("kbd", { "aria-hidden": "true" }, key);
}

/** The name of a class on a button, whole where the pointer is. @param {string} name */
function named(name) {
  return h("b", { title: name }, name);
}
