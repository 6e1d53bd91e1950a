/** Finds rows on the map: the one nearest to a place, those inside of an outline. */

const PER_CELL = 4; // rows of a grid cell, in the mean

export class SpatialIndex {
  /** @param {Float32Array} xy */
  constructor(xy) {
    this.xy = xy;
    const n = xy.length / 2;
    this.side = Math.max(1, Math.ceil(Math.sqrt(n / PER_CELL)));
    const cells = this.side * this.side;
    this.starts = new Uint32Array(cells + 1);
    this.rows = new Uint32Array(n);
    this.low = [Infinity, Infinity];
    const high = [-Infinity, -Infinity];
    for (let at = 0; at < xy.length; at++) {
      const axis = at & 1;
      if (xy[at] < this.low[axis]) this.low[axis] = xy[at];
      if (xy[at] > high[axis]) high[axis] = xy[at];
    }
    this.step = [0, 1].map((axis) => Math.max((high[axis] - this.low[axis]) / this.side, 1e-9));
    const cellOf = new Uint32Array(n);
    for (let row = 0; row < n; row++) {
      cellOf[row] = this.cell(xy[2 * row], 0) + this.side * this.cell(xy[2 * row + 1], 1);
      this.starts[cellOf[row] + 1]++;
    }
    for (let cell = 0; cell < cells; cell++) this.starts[cell + 1] += this.starts[cell];
    const next = this.starts.slice();
    for (let row = 0; row < n; row++) this.rows[next[cellOf[row]]++] = row;
  }

  /** @param {number} value @param {number} axis */
  cell(value, axis) {
    return Math.min(this.side - 1, Math.max(0, Math.floor((value - this.low[axis]) / this.step[axis])));
  }

  /**
   * Call `visit` for every row of the grid cells that a rectangle touches.
   * @param {number} left @param {number} bottom @param {number} right @param {number} top
   * @param {(row: number) => void} visit
   */
  within(left, bottom, right, top, visit) {
    const [firstX, lastX] = [this.cell(left, 0), this.cell(right, 0)];
    const [firstY, lastY] = [this.cell(bottom, 1), this.cell(top, 1)];
    for (let cy = firstY; cy <= lastY; cy++) {
      const from = this.starts[cy * this.side + firstX], to = this.starts[cy * this.side + lastX + 1];
      for (let at = from; at < to; at++) visit(this.rows[at]);
    }
  }

  /**
   * The row nearest to a place, -1 if none is within `reach` or passes the test.
   * @param {number} x @param {number} y @param {number} reach in map units
   * @param {(row: number) => boolean} accepts
   */
  nearest(x, y, reach, accepts) {
    let best = -1, least = reach * reach;
    this.within(x - reach, y - reach, x + reach, y + reach, (row) => {
      const dx = this.xy[2 * row] - x, dy = this.xy[2 * row + 1] - y, squared = dx * dx + dy * dy;
      if (squared <= least && accepts(row)) [best, least] = [row, squared];
    });
    return best;
  }

  /**
   * Rows inside of an outline, in the order of the file.
   * @param {[number, number][]} outline
   * @param {(row: number) => boolean} accepts
   */
  inside(outline, accepts) {
    const xs = outline.map(([x]) => x), ys = outline.map(([, y]) => y);
    const [left, right, bottom, top] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    /** @type {number[]} */
    const found = [];
    this.within(left, bottom, right, top, (row) => {
      const x = this.xy[2 * row], y = this.xy[2 * row + 1];
      if (x < left || x > right || y < bottom || y > top || !accepts(row)) return;
      let odd = false;
      for (let at = 0, before = xs.length - 1; at < xs.length; before = at++) {
        const crosses = ys[at] > y !== ys[before] > y;
        if (crosses && x < (xs[before] - xs[at]) * (y - ys[at]) / (ys[before] - ys[at]) + xs[at]) odd = !odd;
      }
      if (odd) found.push(row);
    });
    return Uint32Array.from(found).sort();
  }
}

/**
 * An outline with fewer corners: those closer than `least` pixels to the one before are left out.
 * @param {[number, number][]} path
 * @param {number} least
 * @returns {[number, number][]}
 */
export function thinned(path, least) {
  /** @type {[number, number][]} */
  const kept = [];
  for (const point of path) {
    const last = kept.at(-1);
    if (!last || Math.hypot(point[0] - last[0], point[1] - last[1]) >= least) kept.push(point);
  }
  return kept;
}
