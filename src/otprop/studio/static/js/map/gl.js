/** Draws the rows with WebGL2. Geometry is sent to the graphics card once, then one byte a row and property. */
import { RAMP, markerOf, rgb } from "../palette.js";
import { FRAGMENT, PASS, VERTEX } from "./shaders.js";

/**
 * @typedef {import("./view.js").View} View
 * @typedef {import("../store.js").Store} Store
 * @typedef {{view: View, coloring: number, round: number, isolated: number|null, anyFaded: boolean, flags: Uint8Array,
 *   part: number, colors: Record<string, string>}} Scene
 */

const ROW_PROPERTIES = ["label", "confidence", "source", "round", "novelty", "flags"];
const RING = 1.6; // pixels of the page

export class GlRenderer {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: false, depth: false, alpha: true, powerPreference: "high-performance" });
    if (!gl) throw new Error("no WebGL2");
    this.gl = gl;
    this.canvas = canvas;
    this.program = this.link();
    this.place = (/** @type {string} */ name) => gl.getUniformLocation(this.program, name);
    /** @type {Map<string, WebGLUniformLocation|null>} */
    this.uniforms = new Map();
    this.buffers = Object.fromEntries(["position", "order", "labelled", ...ROW_PROPERTIES].map((name) => [name, gl.createBuffer()]));
    this.vertexArray = gl.createVertexArray();
    this.classes = gl.createTexture();
    this.n = 0;
    this.nLabelled = 0;
    this.wide = false;
  }

  link() {
    const { gl } = this;
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(/** @type {number} */ (kind));
      if (!shader) throw new Error("no shader");
      gl.shaderSource(shader, /** @type {string} */ (source));
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader) ?? "shader");
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program) ?? "program");
    return program;
  }

  /** Whether there is no graphics card, and the processor draws. */
  get software() {
    const { gl } = this;
    const masked = gl.getParameter(gl.RENDERER);
    const more = masked === "WebKit WebGL" ? gl.getExtension("WEBGL_debug_renderer_info") : null;
    const name = more ? gl.getParameter(more.UNMASKED_RENDERER_WEBGL) : masked;
    return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(name);
  }

  /** @param {string} name */
  uniform(name) {
    if (!this.uniforms.has(name)) this.uniforms.set(name, this.place(name));
    return this.uniforms.get(name) ?? null;
  }

  /**
   * @param {Float32Array} xy
   * @param {Uint32Array} order rows from below to above
   * @param {boolean} wide whether labels have two bytes
   */
  setGeometry(xy, order, wide) {
    const { gl } = this;
    this.n = order.length;
    this.wide = wide;
    gl.bindVertexArray(this.vertexArray);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers.position);
    gl.bufferData(gl.ARRAY_BUFFER, xy, gl.STATIC_DRAW);
    this.attribute("a_position", (at) => gl.vertexAttribPointer(at, 2, gl.FLOAT, false, 0, 0));
    for (const name of ROW_PROPERTIES) {
      const two = name === "label" && wide;
      gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name]);
      gl.bufferData(gl.ARRAY_BUFFER, this.n * (two ? 2 : 1), gl.DYNAMIC_DRAW);
      const type = two ? gl.UNSIGNED_SHORT : gl.UNSIGNED_BYTE;
      this.attribute(`a_${name}`, (at) => gl.vertexAttribIPointer(at, 1, type, 0, 0));
    }
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers.order);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, order, gl.STATIC_DRAW);
  }

  /** @param {string} name @param {(at: number) => void} point */
  attribute(name, point) {
    const at = this.gl.getAttribLocation(this.program, name);
    if (at < 0) return;
    this.gl.enableVertexAttribArray(at);
    point(at);
  }

  /** @param {Store} store @param {Uint32Array} labelled rows that a person labelled or that are selected */
  setRows(store, labelled) {
    this.upload("label", store.labels);
    this.upload("confidence", store.confidence);
    this.upload("source", store.sources);
    this.upload("round", store.rounds);
    this.upload("novelty", store.novelty);
    this.setLabelled(labelled);
  }

  /** @param {Store} store @param {number[]} rows @param {Uint32Array} labelled */
  patchRows(store, rows, labelled) {
    const { gl } = this;
    /** @type {[string, Uint8Array|Uint16Array][]} */
    const properties = [["label", store.labels], ["confidence", store.confidence], ["source", store.sources], ["round", store.rounds]];
    for (const [name, values] of properties) {
      gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name]);
      for (const row of rows) gl.bufferSubData(gl.ARRAY_BUFFER, row * values.BYTES_PER_ELEMENT, values, row, 1);
    }
    this.setLabelled(labelled);
  }

  /** @param {Uint8Array} flags */
  setFlags(flags) {
    this.upload("flags", flags);
  }

  /** @param {Uint32Array} rows */
  setLabelled(rows) {
    const { gl } = this;
    gl.bindVertexArray(null);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers.labelled);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, rows, gl.DYNAMIC_DRAW);
    this.nLabelled = rows.length;
  }

  /** @param {string} name @param {Uint8Array|Uint16Array} values */
  upload(name, values) {
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name]);
    gl.bufferSubData(gl.ARRAY_BUFFER, 0, values.length > this.n ? values.subarray(0, this.n) : values);
  }

  /** @param {number} n */
  setClasses(n) {
    const { gl } = this;
    const height = this.wide ? 256 : 1;
    const pixels = new Uint8Array(256 * height * 4);
    for (let id = 0; id < Math.min(n, 256 * height); id++) {
      const marker = markerOf(id);
      pixels.set([...marker.rgb, marker.shape], 4 * id);
    }
    gl.bindTexture(gl.TEXTURE_2D, this.classes);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 256, height, 0, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
  }

  /** @param {Scene} scene */
  draw(scene) {
    const { gl, canvas } = this;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (!this.n) return;
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.useProgram(this.program);
    gl.bindVertexArray(this.vertexArray);
    gl.bindTexture(gl.TEXTURE_2D, this.classes);
    this.setScene(scene);
    const shown = Math.max(1, Math.round(this.n * scene.part));
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers.order);
    if (scene.anyFaded) this.drawPass(PASS.faded, shown);
    this.drawPass(PASS.plain, shown);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers.labelled);
    if (this.nLabelled) this.drawPass(PASS.labelled, this.nLabelled);
  }

  /** @param {number} pass @param {number} n */
  drawPass(pass, n) {
    this.gl.uniform1i(this.uniform("u_pass"), pass);
    this.gl.drawElements(this.gl.POINTS, n, this.gl.UNSIGNED_INT, 0);
  }

  /** @param {Scene} scene */
  setScene({ view, coloring, round, isolated, colors }) {
    const { gl, canvas } = this;
    const ratio = canvas.width / view.width;
    const unit = (/** @type {string} */ hex) => rgb(hex).map((part) => part / 255);
    gl.uniform2f(this.uniform("u_middle"), view.x, view.y);
    gl.uniform2f(this.uniform("u_scale"), 2 * view.scale / view.width, 2 * view.scale / view.height);
    gl.uniform1f(this.uniform("u_radius"), view.radius(this.n) * ratio);
    gl.uniform1f(this.uniform("u_ring"), RING * ratio);
    gl.uniform1i(this.uniform("u_coloring"), coloring);
    gl.uniform1ui(this.uniform("u_round"), round);
    gl.uniform1i(this.uniform("u_isolated"), isolated ?? -1);
    gl.uniform1ui(this.uniform("u_none"), this.wide ? 65535 : 255);
    gl.uniform1i(this.uniform("u_classes"), 0);
    gl.uniform3fv(this.uniform("u_ramp"), RAMP.flatMap(unit));
    const sources = [colors.none, colors.ink, colors.here, colors.propagated, colors.edge];
    gl.uniform3fv(this.uniform("u_sources"), sources.flatMap(unit));
    gl.uniform3fv(this.uniform("u_faint"), unit(colors.faint));
    gl.uniform3fv(this.uniform("u_accent"), unit(colors.link));
    gl.uniform3fv(this.uniform("u_ink"), unit(colors.ink));
  }
}
