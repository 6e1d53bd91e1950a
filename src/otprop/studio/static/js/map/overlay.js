/** What lies above the points: the row that is shown, its nearest labelled rows, the lasso, rows that just changed. */

const PULSE = 1500, STEPS = 5; // milliseconds that changed rows are marked; pictures in this time
const MOST_PULSES = 3000;

export class Overlay {
  /** @param {import("./map.js").RowMap} map */
  constructor(map) {
    this.map = map;
    this.canvas = document.createElement("canvas");
    this.canvas.className = "overlay";
    this.canvas.setAttribute("aria-hidden", "true");
    map.host.append(this.canvas);
    this.current = -1;
    this.hovered = -1;
    /** @type {number[]} */
    this.near = [];
    /** @type {[number, number][]|null} */
    this.lasso = null;
    /** @type {Uint32Array|null} */
    this.pulsed = null;
    this.pulseStart = 0;
    this.timer = 0;
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
  }

  resize() {
    const ratio = Math.min(devicePixelRatio || 1, 2);
    this.canvas.width = Math.round(this.map.view.width * ratio);
    this.canvas.height = Math.round(this.map.view.height * ratio);
  }

  /** Mark rows for a moment. @param {Uint32Array} rows */
  pulse(rows) {
    this.pulsed = rows.length ? rows.subarray(0, MOST_PULSES) : null;
    this.pulseStart = performance.now();
    this.animate();
  }

  /** Few pictures instead of sixty a second: a key press must not wait for them. */
  animate() {
    clearTimeout(this.timer);
    if (!this.pulsed) return;
    if (performance.now() - this.pulseStart >= PULSE) this.pulsed = null;
    this.draw();
    if (this.pulsed) this.timer = setTimeout(() => this.animate(), this.still.matches ? PULSE : PULSE / STEPS);
  }

  draw() {
    const context = this.canvas.getContext("2d");
    if (!context || !this.map.visible) return;
    const { map } = this;
    const ratio = this.canvas.width / map.view.width;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, map.view.width, map.view.height);
    if (this.pulsed) this.drawPulse(context, this.pulsed);
    if (this.current >= 0) this.drawCurrent(context);
    if (this.hovered >= 0) this.ring(context, map.position(this.hovered), 8, map.colors.ink, 1.5);
    if (this.lasso && this.lasso.length > 1) this.drawLasso(context, this.lasso);
  }

  /** @param {CanvasRenderingContext2D} context @param {Uint32Array} rows */
  drawPulse(context, rows) {
    const age = this.still.matches ? 0.4 : (performance.now() - this.pulseStart) / PULSE;
    context.globalAlpha = Math.max(0, 1 - age) * 0.8;
    context.strokeStyle = this.map.colors.link;
    context.lineWidth = 1.2;
    context.beginPath();
    for (const row of rows) {
      const [x, y] = this.map.position(row);
      const r = 4 + 7 * age;
      context.moveTo(x + r, y);
      context.arc(x, y, r, 0, 2 * Math.PI);
    }
    context.stroke();
    context.globalAlpha = 1;
  }

  /** @param {CanvasRenderingContext2D} context */
  drawCurrent(context) {
    const { map } = this;
    const [x, y] = map.position(this.current);
    context.strokeStyle = map.colors.quiet;
    context.lineWidth = 1;
    context.setLineDash([3, 3]);
    context.beginPath();
    for (const row of this.near) {
      context.moveTo(x, y);
      context.lineTo(...map.position(row));
    }
    context.stroke();
    context.setLineDash([]);
    this.ring(context, [x, y], 10, map.colors.paper, 5);
    this.ring(context, [x, y], 10, map.colors.link, 2.5);
  }

  /** @param {CanvasRenderingContext2D} context @param {[number, number]} at @param {number} r @param {string} color @param {number} width */
  ring(context, [x, y], r, color, width) {
    context.strokeStyle = color;
    context.lineWidth = width;
    context.beginPath();
    context.arc(x, y, r, 0, 2 * Math.PI);
    context.stroke();
  }

  /** @param {CanvasRenderingContext2D} context @param {[number, number][]} path */
  drawLasso(context, path) {
    context.beginPath();
    path.forEach(([x, y], at) => (at ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.closePath();
    context.globalAlpha = 0.12;
    context.fillStyle = this.map.colors.link;
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = this.map.colors.link;
    context.lineWidth = 1.5;
    context.setLineDash([5, 3]);
    context.stroke();
    context.setLineDash([]);
  }
}
