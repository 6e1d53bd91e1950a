/** Puts the page together. */
import { Refused, getJson, sentenceOf } from "./api.js";
import { Card } from "./card.js";
import { ClassList } from "./classes.js";
import { Decide } from "./decide.js";
import { askName, askNewName, findClass, prepareDialogs, prepareExport } from "./dialogs.js";
import { byId, count, h, replace, short } from "./dom.js";
import { Film } from "./film.js";
import { Grid } from "./grid.js";
import { Hover } from "./hover.js";
import { listenToKeys } from "./keys.js";
import { Live } from "./live.js";
import { RowMap } from "./map/map.js";
import { Pointer } from "./map/pointer.js";
import { MapTools } from "./maptools.js";
import { clearNotice, say } from "./notices.js";
import { Orders } from "./orders.js";
import { Outbox } from "./outbox.js";
import { Queue } from "./queue.js";
import { Search } from "./search.js";
import { Session } from "./session.js";
import { Status } from "./status.js";
import { SOURCE, Store } from "./store.js";
import { Watch } from "./watch.js";

const store = new Store();
const status = new Status(store);
const outbox = new Outbox((condition, waiting, sentence) => status.sent(condition, waiting, sentence));
const map = new RowMap(byId("map"), store);
const queue = new Queue(store, () => showQueue());
const session = new Session(store, queue, outbox, showRow);
const card = new Card(store, queue, showRow, showNear);
const search = new Search(store, (text) => {
  tools.showView("label"); // on a narrow window, where the rows are
  void orders.change("search", text);
}, () => leaveSearch());
const film = new Film(store, map);
const hover = new Hover(store, map);
const pointer = new Pointer(map, {
  hover: (row, x, y) => hover.show(row, x, y),
  pick: (row) => showRow(row, "picked on the map"),
  lasso: selectRows,
  tool: (tool) => tools.showTool(tool),
});
const tools = new MapTools(store, map, pointer, selectRows);
const orders = new Orders(store, queue, search, outbox, () => grid.follow());
const grid = new Grid(store, queue, showRow, choose);
new ClassList(store, (one) => askNewName(one, store, (name) => void session.renameClass(one.id, name)));
new Watch(store, (error) => void session.setGoal(error), showChanged);

/** @param {(row: number) => void} act */
function withRow(act) {
  const entry = queue.current;
  if (entry && card.shown) act(entry.id);
  else if (entry) say(`Row ${entry.id + 1} is still loading: the key was ignored.`);
}

/** @param {number} id @param {import("./types.js").LabelKind} [kind] */
function choose(id, kind = "label") {
  const { selection } = store;
  if (selection) void session.labelRegion(selection, id, kind);
  else withRow((row) => session.labelRow(row, id, kind));
}

/** @param {"remove"|"unknown"} kind */
function withoutClass(kind) {
  const { selection } = store;
  if (selection) return void (kind === "remove" ? session.clearRegion(selection) : session.labelRegion(selection, null, kind));
  return withRow((row) => {
    if (kind === "remove" && !store.byPerson(row) && store.sources[row] !== SOURCE.unknown) return say(`Row ${row + 1} has no label to remove.`);
    return session.labelRow(row, null, kind);
  });
}

/** Keep a doubtful label: what the server knows of the row now counts, not what was on the screen a moment ago. */
async function keep() {
  const entry = queue.current;
  if (!entry || store.selection) return;
  if (outbox.entries.some(({ body }) => body.rows?.includes(entry.id))) await outbox.drained();
  await queue.fresh(entry.id);
  const detail = queue.detail(entry.id);
  if (queue.current?.id !== entry.id || !detail) return;
  if (detail.issue && detail.label !== null) session.labelRow(entry.id, detail.label, "keep");
  else say(`Row ${entry.id + 1} has no doubtful label to keep.`);
}

const actions = {
  choose,
  accept() {
    if (store.selection) return acceptAll(store.selection);
    if (card.justChanged) return say("The proposal has just changed. Check it, then press Enter.");
    return withRow((row) => {
      const issue = card.shown?.issue, proposal = card.proposal;
      if (issue) session.labelRow(row, issue.suggested, "label");
      else if (proposal) session.labelRow(row, proposal.class, "accept");
      else say("No class is proposed for this row yet. Press the key of a class.");
    });
  },
  keep: () => void keep(),
  nextMatch() {
    queue.nextMatch();
    say("Enter goes to the next match, the key of a class labels this row, Escape ends the search.");
  },
  remove: () => withoutClass("remove"),
  unknown: () => withoutClass("unknown"),
  skip: () => withRow((row) => session.skip(row)),
  makeClass: () => askName(store, choose, (name) => void chooseNew(name)),
  findClass: () => findClass(store, choose, (name) => void chooseNew(name)),
  clear: () => store.select(null),
  queueLasso() {
    queue.lasso = store.selection ?? new Uint32Array(0);
    store.select(null);
    void orders.change("lasso", "");
  },
};
const decide = new Decide(store, card, actions);

/** Accept the proposals of all selected rows, where they are of one class. @param {Uint32Array} selection */
function acceptAll(selection) {
  const free = [...selection].filter((row) => store.sources[row] === SOURCE.propagated);
  const classes = new Set(free.map((row) => store.labelOf(row)));
  if (!grid.open || classes.size !== 1) return say("Press the key of a class to label the selected rows.");
  return void session.labelRegion(Uint32Array.from(free), store.labelOf(free[0]), "accept");
}

/** Show the pictures instead of the map, or the map again. @param {boolean} pictures */
function showPictures(pictures) {
  if (pictures && !store.state.pictures) return say("This table has no column of pictures.");
  tools.showView("map");
  tools.showPictures(pictures);
  return grid.toggle(pictures);
}

/** Make a class and give it to what was shown when its name was asked for. @param {string} name */
async function chooseNew(name) {
  const { selection } = store, entry = queue.current;
  const id = await session.makeClass(name);
  if (id === null) return;
  if (selection) void session.labelRegion(selection, id, "label");
  else if (entry) session.labelRow(entry.id, id, "label");
  else say(`Added the class ${short(name)}.`);
}

function showQueue() {
  card.render();
  card.renderUpcoming();
  decide.render();
  orders.render();
  card.scrollUp();
  const row = queue.current?.id ?? -1;
  if (map.overlay.current === row) return;
  map.overlay.current = row;
  map.reveal(row);
}

/** @param {number} row @param {string} reason @param {string} [note] */
function showRow(row, reason, note) {
  queue.show(row, reason, note);
  tools.showView("label");
}

/** @param {number[]} rows */
function showNear(rows) {
  map.overlay.near = rows;
  map.requestSoon();
}

/** @param {Uint32Array} rows */
function selectRows(rows) {
  clearNotice("region");
  if (!byId("map").dataset.layout) return say("The map is not ready yet.");
  store.select(rows);
  say(rows.length ? `${count(rows.length, "row")} selected.` : "No rows selected.");
  if (rows.length) tools.showView("label");
  return undefined;
}

function showChanged() {
  const already = store.filter?.what.includes("changed class");
  store.setFilter(already ? null : { rows: store.changed, what: `${count(store.changed.length, "row")} changed class` });
}

/** Back from the rows of a search to the suggested ones. */
function leaveSearch() {
  if (queue.order !== "search") return;
  say("Back to the suggested rows.");
  void orders.change("suggest", "");
}

function escape() {
  if (store.selection) store.select(null);
  else if (queue.order === "search") {
    tools.clearFilter();
    leaveSearch();
  }
  else if (store.filter || store.isolated !== null) tools.clearFilter();
  else if (pointer.tool === "lasso") pointer.setTool("pan");
}

function startSearch() {
  const input = byId("search");
  if (!input.offsetParent) tools.showView("map"); // on a narrow window it is there
  input.focus();
}

function startKeys() {
  listenToKeys({
    Enter: () => (queue.order === "search" && !store.selection ? actions.nextMatch() : actions.accept()), s: actions.skip, u: () => void session.undo(), "Shift+U": () => void session.redo(), n: actions.makeClass,
    k: actions.keep, x: actions.remove, "0": actions.unknown, " ": actions.findClass, Escape: escape,
    ArrowLeft: () => queue.back(), ArrowRight: () => (queue.order === "search" ? queue.nextMatch() : queue.entries.length && queue.advance()),
    "/": startSearch, "?": () => byId("help").showModal(),
    "Shift+L": () => pointer.setTool(pointer.tool === "lasso" ? "pan" : "lasso"),
    "Shift+A": () => (grid.open ? grid.selectAll() : selectRows(pointer.inWindow())), "Shift+P": () => showPictures(!grid.open), "Shift+F": () => film.toggle(), "Shift+C": () => tools.nextColoring(),
    "Shift+E": () => byId("export").showModal(), "Shift+M": () => { showPictures(false); byId("map").focus(); },
    "Shift+O": () => byId("order").focus(), "Shift+D": () => void orders.change("issues", ""), "Shift+N": () => void orders.change("novel", ""),
    "Shift+S": () => void orders.change("suggest", ""), "Shift+G": () => { tools.showView("progress"); byId("goal").focus(); },
  }, (key) => {
    const found = store.state.classes.find((one) => one.key === key);
    if (found) choose(found.id);
    return Boolean(found);
  });
  byId("undo").addEventListener("click", () => void session.undo());
  byId("redo").addEventListener("click", () => void session.redo());
  byId("show-export").addEventListener("click", () => byId("export").showModal());
  byId("show-map").addEventListener("click", () => showPictures(false));
  byId("show-pictures").addEventListener("click", () => showPictures(true));
  byId("show-help").addEventListener("click", () => byId("help").showModal());
}

let foreign = 0;
/** @param {import("./types.js").State} state */
function onState(state) {
  const before = store.state;
  store.setState(state);
  byId("undo").disabled = !state.can_undo;
  byId("redo").disabled = !state.can_redo;
  byId("middle").hidden = !state.pictures;
  clearTimeout(foreign);
  if (before && before.suggested !== state.suggested) void queue.renew().catch(() => {});
  if (before && before.propagation.state !== "waiting" && state.propagation.state === "waiting") void refresh(false); // labels fell away
  // a change of another page; those of this one are on the map already
  if (state.revision > store.known) foreign = setTimeout(() => void followOthers(), outbox.waiting ? 500 : 150);
}

async function followOthers() {
  if (store.state.revision <= store.known) return;
  if (outbox.waiting) {
    foreign = setTimeout(() => void followOthers(), 300);
    return;
  }
  await refresh(false);
}

/** @param {boolean} pulse whether to mark the rows whose class changed */
async function refresh(pulse) {
  try {
    await store.fetchRows();
    if (pulse) map.overlay.pulse(store.changed);
    await queue.renew();
    showQueue();
  } catch {
    // the server is gone: everything is fetched again when it is back
  }
}

const live = new Live({
  state: onState,
  result: () => void refresh(true),
  up() {
    const wasDown = status.down !== "";
    status.setDown("");
    outbox.retry();
    if (wasDown) void refresh(false);
  },
  down: (why) => status.setDown(why),
});

async function start() {
  prepareDialogs();
  prepareExport(outbox);
  const state = await getJson("/api/state");
  document.title = `${state.file} · otprop studio`;
  replace(byId("file"), h("b", {}, state.file), h("span", {}, ` ${state.target}`));
  outbox.onAdopted = () => void refresh(false);
  await outbox.open(state.session_id);
  onState(state);
  live.open(); // first, so that no result is missed
  await Promise.all([tools.setLayout("pca"), store.fetchRows()]);
  store.on("selection", () => decide.render());
  store.on("classes", () => decide.render());
  startKeys();
  await queue.ask();
  document.body.dataset.ready = "true";
}

start().catch((error) => {
  const locked = error instanceof Refused && error.status < 500;
  status.setDown(locked ? "locked" : "gone");
  say(sentenceOf(error), "error");
  if (!locked) setTimeout(() => location.reload(), 3000);
});
