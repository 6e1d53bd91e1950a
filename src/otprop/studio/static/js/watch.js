/** How good the labels are by now: expected error against labels given, what changed, and how far the goal is. */
import { getJson } from "./api.js";
import { byId, count, grouped, h, percent, refresh, replace, short, svg } from "./dom.js";
import { voterSentence } from "./votes.js";

/**
 * @typedef {import("./store.js").Store} Store
 * @typedef {import("./types.js").CurvePoint} CurvePoint
 */

const WIDTH = 320, HEIGHT = 150, LEFT = 38, RIGHT = 10, TOP = 10, BOTTOM = 24;

export class Watch {
  /** @param {Store} store @param {(error: number|null) => void} setGoal @param {() => void} showChanged */
  constructor(store, setGoal, showChanged) {
    this.store = store;
    this.drawn = "";
    this.logged = -1;
    /** What is wrong with the goal that was typed. */
    this.wrongGoal = "";
    store.on("state", () => this.render());
    byId("goal-form").addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      const text = byId("goal").value.trim().replace(",", ".");
      const value = Number(text);
      this.wrongGoal = text && !(value > 0 && value < 100) ? `“${short(text)}” is not a percentage. Enter a number between 0 and 100, such as 2.` : "";
      byId("goal").setAttribute("aria-invalid", String(Boolean(this.wrongGoal)));
      this.renderGoal();
      if (this.wrongGoal) return;
      setGoal(text ? value / 100 : null);
      byId("goal").blur();
    });
    byId("changed").addEventListener("click", showChanged);
    byId("history").addEventListener("toggle", () => void this.renderHistory());
  }

  render() {
    const { state } = this.store;
    const { error } = state;
    const { value, low, high } = error ?? { value: null, low: null, high: null };
    replace(byId("error-value"), value === null ? "–" : percent(value));
    replace(byId("error-range"), low !== null && high !== null ? `${percent(low)} to ${percent(high)}` :
      value === null ? "needs labels of two classes" : "");
    replace(byId("labels-value"), grouped(state.labels));
    replace(byId("labels-of"), `of ${grouped(state.n_rows)}`);
    replace(byId("found-value"), grouped(state.classes_found));
    replace(byId("changed-value"), grouped(state.changed));
    byId("changed").disabled = !state.changed;
    this.renderGoal();
    byId("voters").hidden = !state.voters.length;
    refresh(byId("voters-list"), state.voters, () => state.voters.flatMap((voter) => [h("dt", {}, voter.name), h("dd", {}, voterSentence(voter))]));
    const key = JSON.stringify([state.curve, state.goal]);
    if (this.store.state.revision !== this.logged) void this.renderHistory();
    if (key === this.drawn) return;
    this.drawn = key;
    replace(byId("curve"), ...(state.curve.length ? [curve(byLabels(state.curve), state.goal)] :
      [h("p", { class: "hint" }, "The curve starts with the first propagation.")]));
  }

  renderGoal() {
    const { goal } = this.store.state;
    const input = byId("goal");
    if (document.activeElement !== input) input.value = goal ? String(Number((100 * goal.error).toFixed(2))) : "";
    const { error } = this.store.state;
    byId("goal-message").dataset.reached = String(Boolean(goal && error && error.value !== null && error.value <= goal.error));
    byId("goal-message").dataset.wrong = String(Boolean(this.wrongGoal));
    if (this.wrongGoal) return replace(byId("goal-message"), this.wrongGoal);
    return replace(byId("goal-message"), goal ? goal.message.charAt(0).toUpperCase() + goal.message.slice(1) : "");
  }

  /** The newest events, when they are asked for. */
  async renderHistory() {
    if (!byId("history").open) return;
    this.logged = this.store.state.revision;
    try {
      const { events } = await getJson("/api/log?n=50");
      replace(byId("events"), ...events.map((/** @type {any} */ event) => h("li", {}, this.sentence(event),
        h("time", { datetime: event.time }, clock(event.time)))));
    } catch {
      // the page says elsewhere that the server is gone
    }
  }

  /** @param {{rows: number, row: number|null, new: number|null, kind: string, name?: string|null}} event */
  sentence(event) {
    const rows = event.rows > 1 ? count(event.rows, "row") : event.row === null ? "" : `row ${event.row + 1}`;
    const special = { "-1": "as in the file", "-2": "no label", "-3": "unknown pile" };
    const name = event.new === null || event.kind === "skip" ? "" : ` → ${special[String(event.new)] ?? this.store.className(event.new)}`;
    return event.name ? `${event.kind} → ${event.name}` : `${event.kind} ${rows}${name}`;
  }
}

/** Hours, minutes and seconds of a time. @param {string} iso */
export function clock(iso) {
  const time = new Date(iso);
  return Number.isNaN(time.getTime()) ? "" : time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
}

/** The newest point for each number of labels: an undo goes back on the curve. @param {CurvePoint[]} points */
function byLabels(points) {
  const newest = new Map(points.map((point) => [point.labels, point]));
  return [...newest.values()].sort((a, b) => a.labels - b.labels);
}

/** A round distance between at most four lines. @param {number} top */
function tick(top) {
  return [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25].find((step) => top <= 4 * step) ?? 0.25;
}

/**
 * Expected error with its range against the number of labels, and where it meets the goal, as far as that is known.
 * @param {CurvePoint[]} points
 * @param {import("./types.js").State["goal"]} aim
 */
function curve(points, aim) {
  const goal = aim?.error ?? null, now = points[points.length - 1];
  const needed = aim?.known && aim.labels && now.error > aim.error ? aim.labels : null;
  const [value, low, high] = needed ? [needed.value ?? 0, needed.low ?? 0, needed.high ?? 0].map((more) => now.labels + more) : [0, 0, 0];
  const last = Math.max(now.labels, high), first = points.length > 1 || needed ? Math.min(points[0].labels, last - 1) : last - 1;
  const step = tick(Math.max(...points.map(({ high }) => high), goal ?? 0, 0.001));
  const ticks = Math.ceil(Math.max(...points.map(({ high }) => high), goal ?? 0, 0.001) / step - 1e-9), top = ticks * step;
  const x = (/** @type {number} */ labels) => LEFT + (labels - first) / (last - first) * (WIDTH - LEFT - RIGHT);
  const y = (/** @type {number} */ error) => TOP + (1 - error / top) * (HEIGHT - TOP - BOTTOM);
  const trace = (/** @type {[number, number][]} */ path) => path.map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`).join(" ");
  const band = [...points.map(({ labels, high }) => [x(labels), y(high)]), ...[...points].reverse().map(({ labels, low }) => [x(labels), y(low)])];
  const newest = points[points.length - 1];
  const grid = Array.from({ length: ticks + 1 }, (_, at) => at * step).map((error) => [
    svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(error), y2: y(error) }),
    svg("text", { class: "axis", x: LEFT - 5, y: y(error) + 4, "text-anchor": "end" }, `${Number((100 * error).toFixed(2))}\u202f%`)]);
  const ahead = needed && goal !== null ? `; ${percent(goal)} is expected with ${grouped(low)} to ${count(high, "label")}` : "";
  const sentence = `Expected error from ${percent(points[0].error)} with ${count(points[0].labels, "label")} to ${percent(newest.error)} with ${count(newest.labels, "label")}${ahead}`;
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": sentence }, ...grid.flat(),
    svg("polygon", { class: "range", points: trace(/** @type {any} */ (band)) }),
    svg("polyline", { class: "line", points: trace(points.map(({ labels, error }) => [x(labels), y(error)])) }),
    goal === null ? null : svg("line", { class: "goal", x1: LEFT, x2: WIDTH - RIGHT, y1: y(goal), y2: y(goal) }),
    needed && goal !== null ? [svg("polyline", { class: "ahead", points: trace([[x(now.labels), y(now.error)], [x(value), y(goal)]]) }),
      svg("path", { class: "reach", d: `M${x(low)},${y(goal) - 4}v8M${x(high)},${y(goal) - 4}v8M${x(low)},${y(goal)}H${x(high)}` })] : null,
    svg("circle", { class: "dot", cx: x(newest.labels), cy: y(newest.error), r: 3.5 }),
    points.length > 1 ? svg("text", { class: "axis", x: LEFT, y: HEIGHT - 7 }, grouped(first)) : null,
    svg("text", { class: "axis", x: WIDTH - RIGHT, y: HEIGHT - 7, "text-anchor": "end" }, needed ? `${grouped(low)} to ${grouped(high)} labels` : count(newest.labels, "label")));
}
