/** What a person does to labels: shown at once, sent in order, confirmed by the server. */
import { sentenceOf } from "./api.js";
import { count, percent, probability, short } from "./dom.js";
import { clearNotice, notice, say } from "./notices.js";
import { SOURCE } from "./store.js";

/**
 * @typedef {import("./types.js").LabelKind} LabelKind
 * @typedef {import("./store.js").Store} Store
 * @typedef {import("./queue.js").Queue} Queue
 * @typedef {import("./outbox.js").Outbox} Outbox
 */

const DRAWN = "random"; // the reason of a row that was drawn at random
const SAID = 3; // labels after which a contradiction has been seen, or is not looked at any more

export class Session {
  /** @param {Store} store @param {Queue} queue @param {Outbox} outbox @param {(row: number, reason: string, note?: string) => void} showRow */
  constructor(store, queue, outbox, showRow) {
    this.store = store;
    this.queue = queue;
    this.outbox = outbox;
    this.showRow = showRow;
    /** Why rows were shown when they were labelled. @type {Map<number, string>} */
    this.reasons = new Map();
    /** Labels since a contradiction was said. */
    this.contradicted = 0;
  }

  /** A change of ours is saved. A gap before it is a change of another page, which is fetched. @param {number} revision */
  confirmed(revision) {
    if (revision === this.store.known + 1) this.store.known = revision;
  }

  /**
   * Label one row, or remove its label, and go on to the next.
   * @param {number} row
   * @param {number|null} label
   * @param {LabelKind} kind
   */
  labelRow(row, label, kind) {
    const before = this.store.sources[row], same = this.store.labelOf(row) === label;
    void this.send([row], label, kind, false);
    const name = label === null ? "" : short(this.store.className(label));
    const number = `Row ${row + 1}`;
    if (kind === "unknown") say(`${number} is on the unknown pile.`);
    else if (kind === "remove") say(before === SOURCE.unknown ? `${number} is off the unknown pile.` : `${number}: label removed.`);
    else if (same && before !== SOURCE.propagated) say(`${number} stays ${name}.`);
    else say(`${number} is ${name}${before === SOURCE.given ? " (given in the file before)" : ""}.`);
  }

  /**
   * Label all selected rows that no person has labelled; where a person has labelled all, these.
   * @param {Uint32Array} selection
   * @param {number|null} label
   * @param {LabelKind} kind
   */
  async labelRegion(selection, label, kind) {
    const free = [...selection].filter((row) => !this.store.byPerson(row));
    const rows = free.length ? free : [...selection];
    const left = selection.length - rows.length;
    this.store.select(null);
    const answer = await this.send(rows, label, kind, true);
    if (!answer) return;
    const n = count(rows.length, "row");
    const done = kind === "unknown" ? `${n} ${rows.length === 1 ? "is" : "are"} on the unknown pile.` : `${n} labelled ${short(this.store.className(label))}.`;
    const kept = left ? ` ${count(left, "row")} already labelled ${left === 1 ? "was" : "were"} not changed.` : "";
    const wrong = answer.expected_wrong;
    const expected = wrong === null || wrong === undefined ? "" :
      ` About ${count(Math.round(wrong), "row")} (${probability(wrong / rows.length)}) expected to be wrong.`;
    this.regionDone(done, `${expected}${kept}`);
  }

  /** Remove the labels of all selected rows, and take those on the unknown pile off it. @param {Uint32Array} selection */
  async clearRegion(selection) {
    const labelled = [...selection].filter((row) => this.store.byPerson(row));
    const piled = [...selection].filter((row) => this.store.sources[row] === SOURCE.unknown);
    const rows = [...labelled, ...piled];
    if (!rows.length) return say("None of these rows has a label to remove.");
    this.store.select(null);
    if (!await this.send(rows, null, "remove", true)) return;
    this.queue.release(rows); // they have no label, and so can come again
    void this.queue.ask().catch(() => {});
    const parts = [labelled.length && `${count(labelled.length, "label")} removed.`, piled.length && `${count(piled.length, "row")} off the unknown pile.`];
    this.regionDone(parts.filter(Boolean).join(" "), "");
  }

  /** @param {string} done @param {string} more */
  regionDone(done, more) {
    say(done);
    notice("region", `${done}${more}`, [{ name: "Undo (u)", act: () => void this.undo() }]);
  }

  /**
   * @param {number[]} rows
   * @param {number|null} label
   * @param {LabelKind} kind
   * @param {boolean} region
   */
  async send(rows, label, kind, region) {
    const source = kind === "unknown" ? SOURCE.unknown : kind === "remove" ? SOURCE.none : SOURCE.here;
    const reason = region ? "" : this.queue.current?.id === rows[0] ? this.queue.current.reason : ""; // as it is on the screen
    const body = { rows, class: label, kind, ...(region ? {} : { reason }) };
    if (reason) this.reasons.set(rows[0], reason);
    clearNotice("region");
    if (++this.contradicted >= SAID) clearNotice("contradiction");
    const overlay = kind === "keep" ? null : this.store.overlay(rows, label, source);
    const answer = this.outbox.send("/api/label", body);
    this.queue.handle(rows);
    try {
      const { revision, contradicts, expected_wrong } = await answer;
      if (overlay) overlay.revision = revision;
      this.confirmed(revision);
      this.queue.expire(rows);
      if (revision <= this.store.fetched) void this.store.fetchRows(); // nothing changed, or a result was faster
      if (contradicts?.length && label !== null) this.contradiction(rows[0], label, contradicts);
      return { expected_wrong };
    } catch (error) {
      this.refused(rows, error);
      return null;
    }
  }

  /** @param {number} row @param {number} label @param {{id: number, class: number, source: number}[]} contradicts */
  contradiction(row, label, contradicts) {
    const [first, ...others] = contradicts;
    const more = others.length ? ` and ${count(others.length, "other")}` : "";
    const given = first.source === SOURCE.given;
    const sentence = `${short(this.store.className(label))} for row ${row + 1} contradicts ${given ? "the" : "your"} label of row ${first.id + 1}` +
      ` (${short(this.store.className(first.class))}${given ? ", given in the file" : ""})${more}.`;
    this.contradicted = 0;
    notice("contradiction", sentence, [
      { name: `Look at row ${first.id + 1}`, act: () => this.showRow(first.id, "contradicted by a later label") },
      { name: `Look at row ${row + 1}`, act: () => this.showRow(row, "contradicts an earlier label") },
    ]);
  }

  /** @param {number[]} rows @param {unknown} error */
  refused(rows, error) {
    this.store.dropOverlays(rows);
    this.queue.release(rows);
    this.queue.expire(rows);
    say(sentenceOf(error), "error");
    void this.store.fetchRows();
  }

  undo() {
    return this.step("/api/undo", "undone");
  }

  redo() {
    return this.step("/api/redo", "labelled again");
  }

  /** @param {string} path @param {string} reason */
  async step(path, reason) {
    clearNotice("region");
    clearNotice("contradiction");
    try {
      const { revision, rows, renamed } = await this.outbox.send(path, {});
      this.confirmed(revision);
      this.store.dropOverlays(rows);
      this.queue.release(rows);
      const what = path === "/api/undo" ? "undo" : "redo";
      if (renamed) return say(`${short(renamed.before)} is called ${short(renamed.after)} again.`);
      if (!rows.length) return say(`There is nothing to ${what}.`);
      say(`${what === "undo" ? "Undone" : "Done again"}: ${rows.length === 1 ? `row ${rows[0] + 1}` : count(rows.length, "row")}.`);
      this.queue.expire(rows);
      if (rows.length === 1 && this.reasons.get(rows[0]) === DRAWN) this.showRow(rows[0], DRAWN, reason); // it was drawn all the same
      else if (rows.length === 1) this.showRow(rows[0], reason);
      await this.store.fetchRows();
      await this.queue.ask(); // the rows that were given free come again
    } catch (error) {
      say(sentenceOf(error), "error");
    }
  }

  /** @param {number} row */
  skip(row) {
    this.queue.handle([row]);
    say(`Row ${row + 1} skipped.`);
    this.outbox.send("/api/skip", { row }).then(({ revision }) => this.confirmed(revision), () => {});
  }

  /**
   * Make a class, or find the one of that name.
   * @param {string} name
   * @returns {Promise<number|null>}
   */
  async makeClass(name) {
    try {
      const { id, key } = await this.outbox.send("/api/classes", { name });
      const { classes } = this.store.state;
      const added = { id, name, key, given: 0, here: 0, propagated: 0 };
      if (!classes.some((one) => one.id === id)) this.store.setState({ ...this.store.state, classes: [...classes, added] });
      return id;
    } catch (error) {
      say(sentenceOf(error), "error");
      return null;
    }
  }

  /** @param {number} id @param {string} name */
  async renameClass(id, name) {
    const before = this.store.className(id);
    try {
      const { revision } = await this.outbox.send("/api/rename", { class: id, name });
      this.confirmed(revision);
      say(`${short(before)} is called ${short(name)} now.`);
    } catch (error) {
      say(sentenceOf(error), "error");
    }
  }

  /** @param {number|null} error */
  async setGoal(error) {
    try {
      await this.outbox.send("/api/goal", { error });
      say(error === null ? "The goal was removed." : `The goal is ${percent(error)} expected error.`);
    } catch (refused) {
      say(sentenceOf(refused), "error");
    }
  }
}
