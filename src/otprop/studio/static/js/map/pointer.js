/** Pointer, wheel and keys on the map: pan, zoom, hover, click, lasso. */
import { thinned } from "./spatial.js";

const REACH = 12; // pixels around the pointer in which a row is found
const CLICK = 4; // pixels of movement that still are a click
const CORNER = 3; // pixels between corners of the lasso
const STEP = 60; // pixels of an arrow key

export class Pointer {
  /**
   * @param {import("./map.js").RowMap} map
   * @param {{hover: (row: number, x: number, y: number) => void, pick: (row: number) => void,
   *   lasso: (rows: Uint32Array) => void, tool: (name: "pan"|"lasso") => void}} on
   */
  constructor(map, on) {
    this.map = map;
    this.on = on;
    /** @type {"pan"|"lasso"} */
    this.tool = "pan";
    /** @type {Map<number, [number, number]>} */
    this.touching = new Map();
    this.travelled = 0;
    /** @type {[number, number][]|null} */
    this.path = null;
    this.hoverFrame = 0;
    const { host } = map;
    host.addEventListener("mousedown", (event) => event.preventDefault()); // keys stay with the row, not with the map
    host.addEventListener("pointerdown", (event) => this.down(event));
    host.addEventListener("pointermove", (event) => this.move(event));
    host.addEventListener("pointerup", (event) => this.up(event));
    host.addEventListener("pointercancel", (event) => this.cancel(event));
    host.addEventListener("pointerleave", () => this.hover(-1, 0, 0));
    host.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    host.addEventListener("keydown", (event) => this.key(event));
  }

  /** @param {"pan"|"lasso"} tool */
  setTool(tool) {
    this.tool = tool;
    this.map.host.dataset.tool = tool;
    this.on.tool(tool);
  }

  /** @param {MouseEvent} event @returns {[number, number]} */
  place(event) {
    const box = this.map.host.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  /** @param {PointerEvent} event */
  down(event) {
    if (event.button !== 0) return;
    /** @type {HTMLElement|null} */ (document.activeElement)?.blur();
    this.hover(-1, 0, 0);
    this.map.host.setPointerCapture(event.pointerId);
    this.touching.set(event.pointerId, this.place(event));
    this.travelled = 0;
    const lasso = this.touching.size === 1 && (this.tool === "lasso" || event.shiftKey);
    this.path = lasso ? [this.place(event)] : null;
  }

  /** @param {PointerEvent} event */
  move(event) {
    const now = this.place(event), before = this.touching.get(event.pointerId);
    if (!before) {
      if (event.pointerType !== "touch") this.find(now);
      return;
    }
    this.travelled += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (this.path) {
      this.path.push(now);
      this.map.overlay.lasso = this.path;
      this.map.overlay.draw();
    } else if (this.touching.size === 2) {
      this.pinch(event.pointerId, before, now);
    } else if (this.travelled > CLICK) {
      this.map.view.pan(now[0] - before[0], now[1] - before[1]);
      this.hover(-1, 0, 0);
      this.map.move();
    }
    this.touching.set(event.pointerId, now);
  }

  /** @param {number} id @param {[number, number]} before @param {[number, number]} now */
  pinch(id, before, now) {
    const other = [...this.touching].find(([one]) => one !== id)?.[1];
    if (!other) return;
    const was = Math.hypot(before[0] - other[0], before[1] - other[1]);
    const is = Math.hypot(now[0] - other[0], now[1] - other[1]);
    if (was > 0) this.map.view.zoomBy(is / was, (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    this.map.move();
  }

  /** @param {PointerEvent} event */
  up(event) {
    if (!this.touching.delete(event.pointerId)) return;
    const now = this.place(event);
    if (this.path && this.travelled > CLICK) {
      const { map } = this;
      const outline = thinned(this.path, CORNER).map(([x, y]) => map.view.toMap(x, y));
      const rows = outline.length > 2 ? map.getIndex().inside(outline, (row) => map.shown(row)) : new Uint32Array(0);
      this.on.lasso(rows);
    } else if (this.travelled <= CLICK) {
      const row = this.rowAt(now);
      if (row >= 0) this.on.pick(row);
    }
    this.endLasso();
  }

  /** @param {PointerEvent} event */
  cancel(event) {
    this.touching.delete(event.pointerId);
    this.endLasso();
  }

  endLasso() {
    this.path = null;
    this.map.overlay.lasso = null;
    this.map.overlay.draw();
  }

  /** @param {[number, number]} place */
  rowAt([px, py]) {
    const { map } = this;
    if (!map.xy.length) return -1;
    const [x, y] = map.view.toMap(px, py);
    return map.getIndex().nearest(x, y, REACH / map.view.scale, (row) => map.shown(row));
  }

  /** @param {[number, number]} place */
  find(place) {
    if (this.hoverFrame) return;
    this.hoverFrame = requestAnimationFrame(() => {
      this.hoverFrame = 0;
      this.hover(this.touching.size ? -1 : this.rowAt(place), ...place);
    });
  }

  /** @param {number} row @param {number} x @param {number} y */
  hover(row, x, y) {
    if (this.map.overlay.hovered === row) return;
    this.map.overlay.hovered = row;
    this.map.overlay.draw();
    this.on.hover(row, x, y);
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    this.map.view.zoomBy(Math.exp(-event.deltaY * lines * 0.0016), ...this.place(event));
    this.map.move();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { view } = this.map;
    /** @type {Record<string, () => void>} */
    const actions = {
      ArrowLeft: () => view.pan(STEP, 0), ArrowRight: () => view.pan(-STEP, 0),
      ArrowUp: () => view.pan(0, STEP), ArrowDown: () => view.pan(0, -STEP),
      "+": () => view.zoomBy(1.4), "=": () => view.zoomBy(1.4), "-": () => view.zoomBy(1 / 1.4), Home: () => view.fit(),
    };
    const action = actions[event.key];
    if (!action) return;
    action();
    event.preventDefault();
    event.stopPropagation();
    this.map.move();
  }

  /** Rows that are in the window and stand out. */
  inWindow() {
    const { map } = this;
    const { width, height } = map.view;
    const corners = [[0, 0], [width, 0], [width, height], [0, height]].map(([x, y]) => map.view.toMap(x, y));
    return map.getIndex().inside(corners, (row) => map.shown(row));
  }
}
