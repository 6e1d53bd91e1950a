/** Controls around the map: colouring, layout, tools, and on narrow windows which part of the page is shown. */
import { Refused, getBinary } from "./api.js";
import { byId, replace } from "./dom.js";
import { say } from "./notices.js";
import { COLORINGS } from "./map/map.js";

const WAIT = 1500; // milliseconds between questions whether the layout is ready

export class MapTools {
  /**
   * @param {import("./store.js").Store} store
   * @param {import("./map/map.js").RowMap} map
   * @param {import("./map/pointer.js").Pointer} pointer
   * @param {(rows: Uint32Array) => void} select
   */
  constructor(store, map, pointer, select) {
    this.store = store;
    this.map = map;
    this.pointer = pointer;
    this.layout = "pca";
    for (const radio of document.querySelectorAll("[name=coloring]")) {
      radio.addEventListener("change", () => this.setColoring(/** @type {HTMLInputElement} */ (radio).value));
    }
    byId("lasso").addEventListener("click", () => pointer.setTool(pointer.tool === "lasso" ? "pan" : "lasso"));
    byId("select-window").addEventListener("click", () => select(pointer.inWindow()));
    byId("zoom-in").addEventListener("click", () => this.zoom(1.5));
    byId("zoom-out").addEventListener("click", () => this.zoom(1 / 1.5));
    byId("fit").addEventListener("click", () => { map.view.fit(); map.request(); });
    byId("clear-filter").addEventListener("click", () => this.clearFilter());
    byId("layout").addEventListener("change", () => void this.setLayout(byId("layout").value));
    for (const button of document.querySelectorAll("[data-show]")) {
      button.addEventListener("click", () => this.showView(/** @type {HTMLElement} */ (button).dataset.show ?? "label"));
    }
  }

  /** @param {number} factor */
  zoom(factor) {
    this.map.view.zoomBy(factor);
    this.map.move();
  }

  /** @param {"pan"|"lasso"} tool */
  showTool(tool) {
    byId("lasso").setAttribute("aria-pressed", String(tool === "lasso"));
    if (tool === "lasso") say("Draw around rows with the pointer. Escape ends the lasso.");
  }

  /** @param {string} name */
  setColoring(name) {
    this.map.setColoring(name);
    for (const legend of document.querySelectorAll("[data-legend]")) {
      /** @type {HTMLElement} */ (legend).hidden = /** @type {HTMLElement} */ (legend).dataset.legend !== name;
    }
    byId("map").dataset.coloring = name;
  }

  nextColoring() {
    const name = COLORINGS[(this.map.coloring + 1) % COLORINGS.length];
    /** @type {any} */ (document.querySelector(`[name=coloring][value=${name}]`)).checked = true;
    this.setColoring(name);
    say(`Coloured by ${name}.`);
  }

  /** Show the map or the pictures in the middle of the page. @param {boolean} pictures */
  showPictures(pictures) {
    document.body.dataset.middle = pictures ? "pictures" : "map";
    byId("show-map").setAttribute("aria-pressed", String(!pictures));
    byId("show-pictures").setAttribute("aria-pressed", String(pictures));
  }

  clearFilter() {
    byId("search").value = "";
    this.store.isolated = null;
    this.store.setFilter(null);
  }

  /** On a narrow window, one part of the page at a time. @param {string} name */
  showView(name) {
    document.body.dataset.view = name;
    for (const button of document.querySelectorAll("[data-show]")) {
      button.setAttribute("aria-pressed", String(/** @type {HTMLElement} */ (button).dataset.show === name));
    }
  }

  /** @param {string} kind */
  async setLayout(kind) {
    this.layout = kind;
    const message = byId("layout-message");
    try {
      const found = await getBinary(`/api/map?kind=${kind}`);
      if (this.layout !== kind) return;
      replace(message, found ? "" : "computing …");
      if (found) {
        this.map.setGeometry(new Float32Array(found.buffer));
        this.map.host.dataset.layout = kind;
      }
      else setTimeout(() => this.layout === kind && void this.setLayout(kind), WAIT);
    } catch (error) {
      const before = this.layout === kind && kind !== "pca";
      this.layout = byId("layout").value = "pca";
      if (before && this.map.host.dataset.layout !== "pca") void this.setLayout("pca");
      replace(message);
      if (error instanceof Refused) say(error.message, "error");
    }
  }
}
