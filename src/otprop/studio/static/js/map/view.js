/** Which part of the map is shown: from map units to pixels of the page and back. */

const MARGIN = 24, MOST = 4000; // pixels around the whole map; how far it can be enlarged

export class View {
  constructor() {
    this.width = 1;
    this.height = 1;
    this.zoom = 1;
    this.x = 0;
    this.y = 0;
    /** What the points cover: left, bottom, right, top. */
    this.bounds = [-1, -1, 1, 1];
  }

  /** Pixels of a map unit. */
  get scale() {
    const [left, bottom, right, top] = this.bounds;
    const wide = Math.max(right - left, 1e-6), tall = Math.max(top - bottom, 1e-6);
    const fit = Math.min((this.width - 2 * MARGIN) / wide, (this.height - 2 * MARGIN) / tall);
    return Math.max(fit, 1e-3) * this.zoom;
  }

  /** @param {Float32Array} xy */
  setBounds(xy) {
    const bounds = [Infinity, Infinity, -Infinity, -Infinity];
    for (let at = 0; at < xy.length; at += 2) {
      if (xy[at] < bounds[0]) bounds[0] = xy[at];
      if (xy[at] > bounds[2]) bounds[2] = xy[at];
      if (xy[at + 1] < bounds[1]) bounds[1] = xy[at + 1];
      if (xy[at + 1] > bounds[3]) bounds[3] = xy[at + 1];
    }
    if (xy.length) this.bounds = bounds;
    this.fit();
  }

  /** Show everything. */
  fit() {
    const [left, bottom, right, top] = this.bounds;
    this.zoom = 1;
    this.x = (left + right) / 2;
    this.y = (bottom + top) / 2;
  }

  /** @param {number} x @param {number} y @returns {[number, number]} */
  toPage(x, y) {
    return [this.width / 2 + (x - this.x) * this.scale, this.height / 2 - (y - this.y) * this.scale];
  }

  /** @param {number} px @param {number} py @returns {[number, number]} */
  toMap(px, py) {
    return [this.x + (px - this.width / 2) / this.scale, this.y - (py - this.height / 2) / this.scale];
  }

  /** @param {number} dx @param {number} dy in pixels */
  pan(dx, dy) {
    this.x -= dx / this.scale;
    this.y += dy / this.scale;
  }

  /**
   * Enlarge around a place that stays where it is.
   * @param {number} factor
   * @param {number} [px]
   * @param {number} [py]
   */
  zoomBy(factor, px = this.width / 2, py = this.height / 2) {
    const [x, y] = this.toMap(px, py);
    this.zoom = Math.min(MOST, Math.max(0.5, this.zoom * factor));
    const [nowX, nowY] = this.toMap(px, py);
    this.x += x - nowX;
    this.y += y - nowY;
  }

  /** Move the middle so that a place is inside of the window. @param {number} x @param {number} y */
  reveal(x, y) {
    const [px, py] = this.toPage(x, y);
    if (px > 12 && py > 12 && px < this.width - 12 && py < this.height - 12) return false;
    this.x = x;
    this.y = y;
    return true;
  }

  /** The radius of a point in pixels: smaller with many rows, larger when enlarged. @param {number} n */
  radius(n) {
    const base = Math.max(1, Math.min(4.6, Math.sqrt(this.width * this.height / Math.max(n, 1)) * 0.22));
    return Math.min(7, base * Math.sqrt(Math.max(this.zoom, 1)));
  }
}
