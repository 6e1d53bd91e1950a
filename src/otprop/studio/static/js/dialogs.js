/** Dialogs: find a class, make one, take results away, help. All are native dialogs: Escape closes them. */
import { post, requestName, sentenceOf } from "./api.js";
import { byId, h, replace, short } from "./dom.js";
import { alike } from "./names.js";
import { swatch } from "./palette.js";
import { say } from "./notices.js";

/**
 * @typedef {import("./store.js").Store} Store
 * @typedef {import("./outbox.js").Outbox} Outbox
 */

const MATCHES = 40;
const NAME_NEEDED = "Enter a name.";

/** Whether a dialog is open, so that keys belong to it. */
export function dialogOpen() {
  return document.querySelector("dialog[open]") !== null;
}

/** Escape and some buttons close the dialog they are in; at once, so that the next key belongs to the page. */
export function prepareDialogs() {
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      dialog.close();
    });
  }
  for (const button of document.querySelectorAll("dialog [data-close]")) {
    button.addEventListener("click", () => button.closest("dialog")?.close());
  }
}

/**
 * Ask for the name of a class; where there is one with nearly the same name, Enter uses that one.
 * @param {Store} store
 * @param {(id: number) => void} use
 * @param {(name: string) => void} make
 */
export function askName(store, use, make) {
  const dialog = byId("new-class"), input = byId("new-class-name"), all = byId("make-anyway");
  const typed = () => input.value.trim();
  const describe = () => {
    const found = alike(typed(), store.classes);
    byId("new-class-alike").hidden = all.hidden = !found;
    if (found) replace(byId("new-class-alike"), "There is already ", h("b", {}, found.name), ". Enter uses it.");
    replace(all, `Make “${short(typed())}”`);
    replace(byId("make-class"), found ? `Use “${short(found.name)}”` : "Make");
  };
  const done = (/** @type {() => void} */ act) => {
    dialog.close();
    act();
  };
  input.value = "";
  describe();
  input.oninput = describe;
  byId("new-class-form").onsubmit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const found = alike(typed(), store.classes);
    if (typed()) return done(() => (found ? use(found.id) : make(typed())));
    byId("new-class-alike").hidden = false;
    return replace(byId("new-class-alike"), NAME_NEEDED);
  };
  all.onclick = () => done(() => make(typed()));
  dialog.showModal();
  input.focus();
}

/** Ask for another name of a class. @param {{name: string}} one @param {Store} store @param {(name: string) => void} done */
export function askNewName(one, store, done) {
  const dialog = byId("rename-class"), input = byId("rename-class-name"), problem = byId("rename-class-problem");
  const typed = () => input.value.trim();
  const wrong = () => {
    if (!typed()) return NAME_NEEDED;
    const taken = typed() !== one.name && store.state.classes.some(({ name }) => name === typed());
    return taken ? `There is a class “${short(typed())}” already. Label the rows with that class instead.` : "";
  };
  input.value = one.name;
  input.oninput = () => replace(problem, "");
  replace(problem, "");
  byId("rename-class-form").onsubmit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    if (wrong()) return replace(problem, wrong());
    dialog.close();
    if (typed() !== one.name) done(typed());
    return undefined;
  };
  dialog.showModal();
  input.select();
}

/**
 * Find a class by typing a part of its name.
 * @param {Store} store
 * @param {(id: number) => void} done
 * @param {(name: string) => void} make
 */
export function findClass(store, done, make) {
  const dialog = byId("find-class"), input = byId("find-class-text"), list = byId("find-class-list");
  /** @type {{id: number|null, name: string}[]} */
  let matches = [];
  let at = 0;
  const choose = () => {
    const match = matches[at];
    if (!match) return;
    dialog.close();
    if (match.id === null) make(match.name);
    else done(match.id);
  };
  const render = () => {
    replace(list, ...matches.map((match, number) => h("li", {
      role: "option", id: `match-${number}`, "aria-selected": String(number === at), click: () => { at = number; choose(); },
    }, match.id === null ? "New class: " : swatch(match.id), h("bdi", {}, match.name))));
    input.setAttribute("aria-activedescendant", matches.length ? `match-${at}` : "");
    list.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  };
  const search = () => {
    const text = input.value.trim(), small = text.toLowerCase();
    const ranked = store.state.classes.filter(({ name }) => name.toLowerCase().includes(small));
    ranked.sort((a, b) => a.name.toLowerCase().indexOf(small) - b.name.toLowerCase().indexOf(small));
    matches = ranked.slice(0, MATCHES).map(({ id, name }) => ({ id, name }));
    const near = alike(text, store.classes);
    if (near && !matches.some(({ id }) => id === near.id)) matches.unshift(near);
    if (text && !store.state.classes.some(({ name }) => name === text)) matches.push({ id: null, name: text });
    at = 0;
    render();
  };
  input.value = "";
  input.oninput = search;
  input.onkeydown = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      at = Math.max(0, Math.min(matches.length - 1, at + (event.key === "ArrowDown" ? 1 : -1)));
      render();
      event.preventDefault();
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose();
    }
  };
  search();
  dialog.showModal();
  input.focus();
}

/** Buttons of the export dialog. @param {Outbox} outbox */
export function prepareExport(outbox) {
  for (const button of document.querySelectorAll("[data-export]")) {
    button.addEventListener("click", () => void takeAway(outbox, /** @type {HTMLButtonElement} */ (button)));
  }
}

/** @param {Outbox} outbox @param {HTMLButtonElement} button */
async function takeAway(outbox, button) {
  const status = byId("export-status");
  button.disabled = true;
  replace(status, "Writing the file …");
  try {
    await outbox.drained(); // all labels are in the file; later ones need not wait for it
    const { name, bytes, url } = await post("/api/export", { format: button.dataset.export }, requestName());
    const link = h("a", { href: url, download: name }, name);
    replace(status, "Ready: ", link, ` (${size(bytes)})`);
    link.click();
    say(`${name} is downloaded.`);
  } catch (error) {
    replace(status, sentenceOf(error));
  } finally {
    button.disabled = false;
    button.focus();
  }
}

/** @param {number} bytes */
function size(bytes) {
  if (bytes < 1e3) return `${bytes} bytes`;
  return bytes < 1e6 ? `${Math.round(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
