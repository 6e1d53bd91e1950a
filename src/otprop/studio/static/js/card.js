/** The row that is shown: its cells, what is proposed for it, and why. */
import { CONFIDENCE, byId, count, h, probability, refresh, replace, short } from "./dom.js";
import { swatch } from "./palette.js";
import { picture, textCells } from "./pictures.js";
import { SOURCE, SOURCE_NAMES } from "./store.js";
import { votesSentence, votesTable } from "./votes.js";

/**
 * @typedef {import("./types.js").RowDetail} RowDetail
 * @typedef {import("./store.js").Store} Store
 * @typedef {import("./queue.js").Queue} Queue
 */

const LONG = 60; // characters from which a cell is shown as text over the whole width
const FEW = 6; // short cells up to which each has a line of its own
const PER_SOURCE = 2, WORTH = 0.05; // classes shown of what a source says; probability from which the second is
const NEAR_CELLS = 3;
const NOVEL = 0.95; // novelty from which a row is said to look like no class
const TO_SEE = 400; // milliseconds that a person needs to see that the proposal has changed

const NOVEL_REASON = "none of these?"; // as the server says it
const NOVELTY = "The row looks like no labelled class: fewer than one in twenty rows of a labelled class are this unusual";

export class Card {
  /** @param {Store} store @param {Queue} queue @param {(row: number, reason: string) => void} showRow @param {(rows: number[]) => void} showNear */
  constructor(store, queue, showRow, showNear) {
    this.store = store;
    this.queue = queue;
    this.showRow = showRow;
    this.showNear = showNear;
    /** What is shown now. @type {RowDetail|null} */
    this.shown = null;
    this.shownEntry = /** @type {import("./types.js").QueueEntry|null} */ (null);
    this.fromTop = false;
    /** When the proposed class of the row on the screen changed. */
    this.changedAt = -Infinity;
  }

  /** Whether the proposal changed so lately that Enter was meant for the one before. */
  get justChanged() {
    return performance.now() - this.changedAt < TO_SEE;
  }

  /** The proposal as it is on the screen: that is what Enter accepts. */
  get proposal() {
    return this.shown?.proposal ?? null;
  }

  /** Show the current row of the queue. */
  render() {
    const entry = this.queue.current;
    const other = entry?.id !== this.shownEntry?.id;
    const detail = entry ? this.queue.detail(entry.id) : null;
    if (!other && entry && this.shown && detail) {
      this.header(entry, detail);
      if (detail !== this.shown) this.renew(detail);
      return;
    }
    this.changedAt = -Infinity;
    this.shownEntry = entry;
    this.shown = detail;
    const body = byId("row-body");
    if (!entry) {
      replace(byId("row-title"), "No row");
      refresh(byId("row-reason"), null, () => []);
      replace(body, h("p", { class: "empty" }, this.emptySentence()));
      this.showNear([]);
      return;
    }
    this.header(entry, detail);
    if (!detail) replace(body, h("p", { class: "empty" }, "Reading the row …"));
    else replace(body, this.issue(detail), this.cells(detail), this.why(detail));
    this.fromTop = true;
    byId("row").dataset.row = String(entry.id);
    byId("row").dataset.ready = String(Boolean(detail));
    this.showNear(detail ? detail.nearest.map(({ id }) => id) : []);
  }

  /** Newer details of the row that is shown: all but its cells, which stay where they are. @param {RowDetail} detail */
  renew(detail) {
    const target = (/** @type {RowDetail|null} */ one) => (one?.issue ? one.issue.suggested : one?.proposal?.class);
    if (target(this.shown) !== undefined && target(this.shown) !== target(detail)) this.changedAt = performance.now();
    this.shown = detail;
    const body = byId("row-body"), at = body.scrollTop;
    body.querySelector(".doubt")?.remove();
    const doubt = this.issue(detail);
    if (doubt) body.prepend(doubt);
    this.why(detail, /** @type {HTMLElement} */ (body.lastElementChild));
    body.scrollTop = at;
    this.showNear(detail.nearest.map(({ id }) => id));
  }

  /** Begin at the top of a new row; after all other changes, since it needs the layout. */
  scrollUp() {
    if (this.fromTop) byId("row-body").scrollTop = 0;
    this.fromTop = false;
  }

  emptySentence() {
    const { order } = this.queue;
    if (this.queue.asking) return "Looking for rows …";
    if (order === "issues") return "No label looks wrong. Press Shift+S for suggested rows.";
    if (order === "novel") return "Every row looks like one of the classes. Press Shift+S for suggested rows.";
    if (order === "unknown") return "The unknown pile is empty. Press 0 to put a row on it.";
    if (order === "search") return "No unlabelled row contains this text. Press Escape to end the search.";
    if (order === "lasso") return "No rows left in the lasso. Drag on the map with Shift to draw a new one.";
    return "No rows left in this queue.";
  }

  /** @param {import("./types.js").QueueEntry} entry @param {RowDetail|null} detail */
  header(entry, detail) {
    const { labels, sources, confidence } = this.store, row = entry.id;
    replace(byId("row-title"), `Row ${row + 1}`);
    const strange = entry.reason !== NOVEL_REASON && !this.store.byPerson(row) && (detail?.novelty ?? 0) >= NOVEL;
    refresh(byId("row-reason"), [entry, Boolean(detail), strange, detail?.issue, labels[row], sources[row], confidence[row]], () => [
      h("span", { class: "tag" }, entry.reason), strange ? h("span", { class: "tag", title: NOVELTY }, NOVEL_REASON) : null, entry.note ? h("span", { class: "tag" }, entry.note) : null, detail && !detail.issue ? this.present(row) : null]);
  }

  /** The label that the row has now. @param {number} row */
  present(row) {
    const label = this.store.labelOf(row), source = this.store.sources[row];
    if (source === SOURCE.unknown) return h("span", {}, "on the unknown pile");
    if (label === null) return h("span", {}, "no label yet");
    const sure = source === SOURCE.propagated ? h("span", { class: "sure", title: CONFIDENCE }, `confidence ${probability(this.store.confidence[row] / 255)}`) : null;
    return h("span", { class: "inline" }, swatch(label), h("bdi", {}, this.store.className(label)), h("span", { class: "sure" }, `${SOURCE_NAMES[source]}${sure ? "," : ""}`), sure);
  }

  /** @param {RowDetail} detail */
  issue(detail) {
    if (!detail.issue) return null;
    return h("p", { class: "doubt" }, "This label looks wrong: it is ", h("b", {}, short(this.store.className(detail.label))),
      ". The other labels suggest ", h("b", {}, short(this.store.className(detail.issue.suggested))),
      ` (${probability(detail.issue.probability)}).`);
  }

  /** @param {RowDetail} detail */
  cells(detail) {
    const shown = detail.image ? picture(this.store, detail.id, "image", { class: "picture" }) :
      detail.no_image ? h("p", { class: "hint" }, `No picture: ${detail.no_image}`) : null;
    const pairs = textCells(this.store, detail.cells);
    const long = pairs.filter(({ cell, kind }) => (cell.length > LONG && kind !== "image") || (kind === "text" && cell));
    const short = pairs.filter((pair) => !long.includes(pair));
    const prose = long.map(({ name, cell }) => h("div", { class: "prose" }, h("h3", {}, name), h("p", {}, cell)));
    const list = short.map(({ name, cell }) => h("div", {}, h("dt", { title: name }, name), h("dd", { class: cell ? null : "missing" }, cell || "–")));
    const only = detail.image && this.store.state.images_are_files && h("p", { class: "hint" }, "Shown only: pictures are not used as features.");
    return h("div", { class: "cells" }, shown, only, ...prose, list.length ? h("dl", { class: list.length > FEW ? "many" : null }, ...list) : null);
  }

  /** Why the class is proposed. @param {RowDetail} detail @param {HTMLElement} [part] where it is shown already */
  why(detail, part = h("section", { class: "why", "aria-label": "Why" })) {
    const { evidence, nearest, votes } = detail;
    const sentence = evidence.length || nearest.length ? "" : this.noReasons(detail);
    const title = `What each source says${detail.source === SOURCE.given || detail.source === SOURCE.here ? ", with the label of the row" : ""}`;
    refresh(part, [detail.id, evidence, nearest, sentence, title, votes, this.store.state.classes.length], () => [
      votes.length ? h("h3", {}, "Votes") : null,
      votes.length ? h("p", { class: "votes" }, votesSentence(this.store, votes)) : null,
      votes.length > 1 ? votesTable(this.store, votes) : null,
      sentence ? h("p", { class: "hint" }, sentence) : null,
      evidence.length ? h("h3", {}, title) : null,
      evidence.length ? this.evidence(detail) : null,
      nearest.length ? h("h3", {}, "Nearest labelled rows") : null,
      nearest.length ? h("ul", { class: "near" }, ...nearest.map((near) => this.near(near))) : null]);
    return part;
  }

  /** @param {RowDetail} detail */
  noReasons(detail) {
    if (!detail.explained) return "Loading the evidence …";
    if (detail.proposal) return "";
    if (this.store.state.propagation.state === "running") return "Waiting for the propagation to propose a class.";
    return "No proposal yet. Label a few rows of each class first.";
  }

  /** @param {RowDetail} detail */
  evidence(detail) {
    const sources = [...new Set(detail.evidence.map(({ source }) => source))];
    const first = sources.flatMap((source) => detail.evidence.filter((one) => one.source === source).filter((one, at) => !at || (at < PER_SOURCE && one.probability >= WORTH))
      .map((one, at) => ({ ...one, source: at ? "" : source })));
    const rows = first.map((one) => h("tr", {}, h("th", { scope: "row" }, one.source.replaceAll("_", " ")),
      h("td", {}, h("span", { class: "inline" }, swatch(one.class), h("bdi", {}, this.store.className(one.class)))),
      h("td", { class: "number" }, meter(one.probability), h("span", {}, probability(one.probability)))));
    return h("table", { class: "evidence" }, h("tbody", {}, ...rows));
  }

  /** @param {import("./types.js").NearRow} near */
  near(near) {
    const texts = textCells(this.store, near.cells, true).filter(({ kind }) => !near.image || kind !== "image");
    const cells = texts.map(({ cell }) => cell).filter(Boolean).slice(0, NEAR_CELLS).join(" · ");
    return h("li", {}, h("button", { type: "button", class: "link", "data-focus": near.id, click: () => this.showRow(near.id, "a nearest labelled row") },
      near.image ? picture(this.store, near.id, "thumbnail", { class: "thumb", alt: "" }) : null,
      swatch(near.class), h("span", { class: "near-class" }, this.store.className(near.class)), h("span", { class: "near-row" }, `row ${near.id + 1}`),
      h("span", { class: "near-cells" }, cells)));
  }

  /** The rows that come after this one. */
  renderUpcoming() {
    const { entries, total, current } = this.queue;
    const rest = Math.max(entries.length, total - (current ? 1 : 0));
    replace(byId("upcoming-title"), `Up next: ${count(rest, "row")}`);
    const shown = entries.slice(0, 12);
    refresh(byId("upcoming"), shown, () => shown.map(({ id, reason, image }) => h("li", {},
      h("button", { type: "button", class: "link", "data-focus": id, click: () => this.showRow(id, reason) },
        image ? picture(this.store, id, "thumbnail", { class: "thumb", alt: "", loading: "lazy" }) : null,
        h("span", { class: "near-row" }, `row ${id + 1}`), h("span", { class: "near-cells" }, reason)))));
  }
}

/** A small bar for a share. @param {number} share */
export function meter(share) {
  const bar = h("span", { class: "meter", "aria-hidden": "true" }, h("i"));
  /** @type {HTMLElement} */ (bar.firstChild).style.width = `${Math.round(100 * share)}%`;
  return bar;
}
