/** What voters say of a row: a language model, annotators, rules. */
import { count, h, probability } from "./dom.js";
import { swatch } from "./palette.js";

/**
 * @typedef {import("./store.js").Store} Store
 * @typedef {import("./types.js").Vote} Vote
 */

/** "3 of 4 say Elstar", the most frequent first. @param {Store} store @param {Vote[]} votes */
export function votesSentence(store, votes) {
  /** @type {Map<number, number>} */
  const counts = new Map();
  for (const { class: id } of votes) if (id !== null) counts.set(id, (counts.get(id) ?? 0) + 1);
  const spoken = [...counts.values()].reduce((sum, n) => sum + n, 0);
  if (!spoken) return "No voter voted on this row.";
  const only = votes.filter(({ class: id }) => id !== null);
  const parts = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([id, n], at) =>
    `${spoken === 1 ? only[0].voter : at ? n : `${n} of ${spoken}`} ${n === 1 ? "says" : "say"} ${store.className(id)}`);
  const silent = votes.length - spoken;
  return `${parts.join(", ")}${silent ? `; ${silent} ${silent === 1 ? "is" : "are"} silent` : ""}.`;
}

/** @param {Store} store @param {Vote[]} votes */
export function votesTable(store, votes) {
  const rows = votes.map(({ voter, class: id }) => h("tr", { class: id === null ? "silent" : null }, h("th", { scope: "row", title: voter }, voter),
    h("td", { colspan: 2 }, id === null ? "silent" : h("span", { class: "inline" }, swatch(id), h("bdi", {}, store.className(id))))));
  return h("table", { class: "evidence" }, h("tbody", {}, ...rows));
}

/** How often a voter agrees with the labels. @param {import("./types.js").VoterInfo} voter */
export function voterSentence({ accuracy, low, high, judged, votes }) {
  if (accuracy === null) return `${count(votes, "vote")}, none on a labelled row yet`;
  return `agrees with the labels in ${probability(accuracy)} (${probability(low)} to ${probability(high)}) of ${count(judged, "row")}`;
}
