/** The list of classes: what stands for each on the map, how many rows it has; a click isolates it. */
import { byId, count, grouped, h, refresh, replace } from "./dom.js";
import { OWN_MARKERS, swatch } from "./palette.js";
import { kbd } from "./decide.js";

/** @typedef {import("./store.js").Store} Store */

const MOST = 400; // classes listed; of more, the filter finds the others

export class ClassList {
  /** @param {Store} store @param {(one: import("./types.js").ClassInfo) => void} [rename] */
  constructor(store, rename = () => {}) {
    this.store = store;
    this.rename = rename;
    this.filter = byId("class-filter");
    this.filter.addEventListener("input", () => this.render());
    store.on("state", () => this.render());
    store.on("filter", () => this.render());
  }

  render() {
    const { unknown } = this.store.state, { classes } = this.store;
    this.filter.hidden = classes.length <= 14;
    const text = this.filter.value.trim().toLowerCase();
    const shown = classes.filter(({ name }) => !text || name.toLowerCase().includes(text)).slice(0, MOST);
    byId("many-classes").hidden = this.store.state.classes.length <= OWN_MARKERS;
    replace(byId("classes-title"), count(classes.length, "class", "classes"));
    refresh(byId("class-list"), [shown, this.store.isolated], () => [...shown.map((one) => this.item(one)),
      classes.length ? null : h("li", { class: "hint" }, "No class yet. Press n to add one.")]);
    replace(byId("unknown-count"), unknown ? `${count(unknown, "row")} on the unknown pile` : "");
  }

  /** @param {import("./types.js").ClassInfo} one */
  item(one) {
    const person = one.given + one.here;
    const isolated = this.store.isolated === one.id;
    const name = `${one.name}: ${person} labelled, ${one.propagated} propagated`;
    return h("li", {}, h("button", {
      type: "button", class: "class", "data-class": one.id, "data-focus": `class-${one.id}`, "aria-pressed": String(isolated), "aria-label": `Show only ${name}`, title: one.name,
      click: () => this.store.isolate(one.id),
    }, kbd(one.key ?? ""), swatch(one.id), h("bdi", {}, one.name),
    h("span", { class: "n" }, h("b", {}, grouped(person)), one.propagated ? ` + ${grouped(one.propagated)}` : "")),
    one.in_file ? null : h("button", { type: "button", class: "rename link", "data-focus": `rename-${one.id}`, "aria-label": `Rename ${one.name}`, title: "Rename", click: () => this.rename(one) }, "✎"));
  }
}
