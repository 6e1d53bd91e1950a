"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const element = (id) => document.getElementById(id);
  const canvas = element("canvas"), context = canvas.getContext("2d");
  const slider = element("slider"), play = element("play"), readout = element("readout");
  const n = data.x.length, last = data.rounds.length - 1;
  const nGiven = data.given.reduce((sum, one) => sum + one, 0);
  const hiddenClasses = new Set();
  const sureness = data.confidence || data.certainty;
  const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
  let round = last, coloring = "label", selected = -1, timer = 0, pending = false;
  let width = 0, height = 0, ratio = 1, colors = {};
  const view = { zoom: 1, x: 0, y: 0 };  // x and y: how far the middle is moved, in grid units

  // drawOrder[] is what is drawn from below to above; uncertain[] is how the arrow keys walk
  const all = Array.from({ length: n }, (_, i) => i);
  const drawOrder = all.slice().sort((a, b) => data.given[a] - data.given[b] || shuffled(a) - shuffled(b));
  const uncertain = all.filter((i) => !data.given[i]).sort((a, b) => sureness[a] - sureness[b] || a - b);
  let byUncertainty = null;
  function shuffled(i) { return (Math.imul(i + 1, 2654435761) >>> 0); }

  const span = (values) => {
    let low = Infinity, high = -Infinity;
    for (const value of values) { if (value < low) low = value; if (value > high) high = value; }
    return n ? [low, Math.max(high - low, 1)] : [0, 1];
  };
  const [left, wide] = span(data.x), [top, tall] = span(data.y);

  function scale() {
    const margin = 16;
    return Math.min((width - 2 * margin) / wide, (height - 2 * margin) / tall) * view.zoom;
  }
  function position(i) {
    const by = scale();
    return [width / 2 + (data.x[i] - left - wide / 2 + view.x) * by, height / 2 + (data.y[i] - top - tall / 2 + view.y) * by];
  }
  function radius() {
    const base = Math.max(1.6, Math.min(4.6, Math.sqrt(width * height / Math.max(n, 1)) * 0.22));
    return Math.min(6, base * Math.sqrt(view.zoom));
  }
  function readColors() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["ink", "paper", "well", "faint", "none", "link"]) colors[name] = style.getPropertyValue("--" + name).trim();
  }
  const stops = data.ramp.map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  const shades = Array.from({ length: 65 }, (_, step) => {
    const at = step / 64 * (stops.length - 1), low = Math.min(Math.floor(at), stops.length - 2);
    return "rgb(" + stops[low].map((c, k) => Math.round(c + (at - low) * (stops[low + 1][k] - c))).join(",") + ")";
  });
  function shade(value) {
    return shades[Math.round(64 * Math.max(0, Math.min(1, (value - data.low[coloring]) / (1 - data.low[coloring]))))];
  }
  const shown = (i) => !hiddenClasses.has(data.code[i]);
  const labelled = (i) => data.round[i] <= round;

  function tracePath(shape, x, y, r) {
    context.beginPath();
    if (shape === "square") context.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8);
    else if (shape === "cross") {
      const a = r * 1.1, b = r * 0.38;
      context.moveTo(x - a, y - a + b); context.lineTo(x - b, y); context.lineTo(x - a, y + a - b); context.lineTo(x - a + b, y + a);
      context.lineTo(x, y + b); context.lineTo(x + a - b, y + a); context.lineTo(x + a, y + a - b); context.lineTo(x + b, y);
      context.lineTo(x + a, y - a + b); context.lineTo(x + a - b, y - a); context.lineTo(x, y - b); context.lineTo(x - a + b, y - a);
      context.closePath();
    } else if (shape === "circle") context.arc(x, y, r, 0, 2 * Math.PI);
    else {
      const corners = { triangle: [[0, -1.3], [1.2, 1], [-1.2, 1]], diamond: [[0, -1.35], [1.35, 0], [0, 1.35], [-1.35, 0]],
        wedge: [[0, 1.3], [1.2, -1], [-1.2, -1]] }[shape];
      corners.forEach(([dx, dy], k) => context[k ? "lineTo" : "moveTo"](x + dx * r, y + dy * r));
      context.closePath();
    }
  }

  function draw() {
    pending = false;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const r = radius();
    context.globalAlpha = 0.8; context.fillStyle = colors.faint;
    for (const i of drawOrder) {
      if (labelled(i) || !shown(i)) continue;
      const [x, y] = position(i);
      tracePath("circle", x, y, r * 0.8); context.fill();
    }
    if (coloring !== "label" && !byUncertainty) byUncertainty = drawOrder.slice().sort((a, b) => data[coloring][b] - data[coloring][a]);
    for (const i of coloring === "label" ? drawOrder : byUncertainty) if (labelled(i) && shown(i)) mark(i, r);
    context.globalAlpha = 1;
    if (selected >= 0) {
      const [x, y] = position(selected);
      context.lineWidth = 2; context.strokeStyle = colors.paper; tracePath("circle", x, y, r + 7); context.stroke();
      context.lineWidth = 2; context.strokeStyle = colors.link; tracePath("circle", x, y, r + 5); context.stroke();
    }
  }
  function mark(i, r) {
    const [x, y] = position(i);
    if (x < -20 || y < -20 || x > width + 20 || y > height + 20) return;
    const code = data.code[i], shape = code < 0 ? "circle" : data.markers[code][1];
    const fresh = !data.given[i] && data.round[i] === round && round < last;
    if (coloring === "label") context.fillStyle = code < 0 ? colors.none : data.markers[code][0];
    else context.fillStyle = shade(data[coloring][i]);
    context.globalAlpha = data.given[i] ? 1 : 0.85;
    const size = data.given[i] ? Math.max(r * 1.25, nGiven > 300 ? 2.4 : 3.2) : fresh ? r * 1.3 : r;
    tracePath(shape, x, y, size); context.fill();
    if (data.given[i]) { context.lineWidth = nGiven > 300 ? 1 : 1.6; context.strokeStyle = colors.ink; context.stroke(); }
  }
  function redraw() { if (!pending) { pending = true; requestAnimationFrame(draw); } }

  function showState() {
    const done = data.rounds.slice(0, round + 1).reduce((sum, rows) => sum + rows, 0);
    const now = data.rounds[round];
    const rows = (number) => grouped(number) + (number === 1 ? " row" : " rows");
    element("state").textContent = round === 0
      ? "Start: " + rows(now) + " with a given label."
      : "Round " + round + " of " + last + ": " + rows(now) + " labelled in it, " + grouped(done) + " of " + grouped(data.total) + " so far.";
    slider.setAttribute("aria-valuetext", "round " + round + " of " + last);
  }
  function setRound(to) { round = Math.max(0, Math.min(last, to)); slider.value = round; showState(); redraw(); }

  function shortened(value) {
    if (value.length <= 80) return [value];
    const more = document.createElement("button"), text = document.createTextNode(value.slice(0, 79) + "\u2026 ");
    more.type = "button"; more.className = "more"; more.textContent = "whole text";
    more.addEventListener("click", () => { text.data = value; more.remove(); readout.focus(); });
    return [text, more];
  }
  function addPair(list, name, value) {
    const term = document.createElement("dt"), text = document.createElement("dd");
    term.textContent = name; text.append(...shortened(value));
    list.append(term, text);
  }
  function showRow(i) {
    selected = i;
    readout.replaceChildren();
    const head = document.createElement("h3");
    head.textContent = i < 0 ? "No row chosen" : "Row " + grouped(data.row[i]);
    readout.append(head);
    if (i < 0) {
      const hint = document.createElement("p");
      hint.className = "note";
      hint.textContent = "Point at a mark, tap it, or go through the rows with the arrow keys, the least certain first.";
      readout.append(hint);
    } else { readout.append(...picture(i), details(i), cells(i)); }
    redraw();
  }
  function picture(i) {  // that of the tables of rows, which has those to look at
    const there = document.querySelector('img[data-picture="' + data.row[i] + '"]');
    if (!there) return [];
    const copy = document.createElement("img");
    copy.src = there.src; copy.alt = ""; copy.className = "picture";
    return [copy];
  }
  function details(i) {
    const list = document.createElement("dl"), code = data.code[i];
    if (data.given[i]) { addPair(list, "label", data.classes[code]); addPair(list, "source", "given in the file"); return list; }
    const best = data.first[i], swapped = code >= 0 && code !== best;
    addPair(list, "label", code < 0 ? "none (likeliest: " + data.classes[best] + ")" : data.classes[code]);
    if (data.confidence) addPair(list, "confidence", data.confidence[i].toFixed(3));
    addPair(list, "certainty", data.certainty[i].toFixed(3));
    const other = swapped ? best : data.second[i], share = swapped ? data.p1[i] : data.p2[i];
    addPair(list, "runner-up", data.classes[other] + " (share " + share.toFixed(3) + ")");
    addPair(list, "round", data.round[i] + " of " + last);
    return list;
  }
  function cells(i) {
    const list = document.createElement("dl");
    list.className = "cells";
    data.names.forEach((name, k) => addPair(list, name, data.cells[k][i] === "" ? "\u2013" : data.cells[k][i]));
    return list;
  }

  function nearestRow(x, y, reach) {
    let best = -1, least = reach * reach;
    for (const i of drawOrder) {
      if (!shown(i)) continue;
      const [px, py] = position(i), d = (px - x) ** 2 + (py - y) ** 2;
      if (d <= least) { least = d; best = i; }
    }
    return best;
  }
  function at(event) {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }
  function zoom(by, x = width / 2, y = height / 2) {
    const before = scale();
    view.zoom = Math.max(1, Math.min(60, view.zoom * by));
    const after = scale();
    view.x += (x - width / 2) * (1 / after - 1 / before);
    view.y += (y - height / 2) * (1 / after - 1 / before);
    if (view.zoom === 1) view.x = view.y = 0;
    redraw();
  }
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => { drag = [event.clientX, event.clientY, false]; });
  canvas.addEventListener("pointermove", (event) => {
    if (drag && event.buttons && view.zoom > 1) {
      const dx = event.clientX - drag[0], dy = event.clientY - drag[1];
      if (drag[2] || Math.abs(dx) + Math.abs(dy) > 3) {
        view.x += dx / scale(); view.y += dy / scale();
        drag = [event.clientX, event.clientY, true];
        redraw();
      }
      return;
    }
    if (event.pointerType === "touch") return;
    const found = nearestRow(...at(event), 12);
    if (found >= 0 && found !== selected) showRow(found);
  });
  canvas.addEventListener("click", (event) => { if (!drag || !drag[2]) showRow(nearestRow(...at(event), 22)); drag = null; });
  canvas.addEventListener("dblclick", (event) => zoom(2, ...at(event)));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== canvas) return;
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 400), ...at(event));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step && uncertain.length) {
      const now = uncertain.indexOf(selected);
      showRow(uncertain[now < 0 ? 0 : (now + step + uncertain.length) % uncertain.length]);
    } else if (event.key === "Escape") showRow(-1);
    else if (event.key === "+" || event.key === "=") zoom(1.5);
    else if (event.key === "-") zoom(1 / 1.5);
    else return;
    event.preventDefault();
  });
  element("in").addEventListener("click", () => zoom(1.6));
  element("out").addEventListener("click", () => zoom(1 / 1.6));
  element("whole").addEventListener("click", () => zoom(1e-9));

  function stopPlaying() { clearInterval(timer); timer = 0; play.textContent = "Play the rounds"; }
  play.addEventListener("click", () => {
    if (timer) return stopPlaying();
    if (round === last) setRound(0);
    play.textContent = "Stop";
    timer = setInterval(() => { setRound(round + 1); if (round === last) stopPlaying(); }, Math.max(120, Math.min(900, 9000 / Math.max(last, 1))));
  });
  slider.addEventListener("input", () => { stopPlaying(); setRound(Number(slider.value)); });

  for (const input of document.querySelectorAll("input[name=color]")) {
    input.addEventListener("change", () => {
      coloring = input.value; byUncertainty = null;
      for (const scale of document.querySelectorAll(".scale")) scale.hidden = scale.dataset.of !== coloring;
      redraw();
    });
  }
  const switches = Array.from(document.querySelectorAll("button.class"));
  function switchClass(button, on) {
    button.setAttribute("aria-pressed", String(on));
    hiddenClasses[on ? "delete" : "add"](Number(button.dataset.class));
  }
  for (const button of switches) button.addEventListener("click", () => { switchClass(button, button.getAttribute("aria-pressed") !== "true"); redraw(); });
  element("all").addEventListener("click", () => { switches.forEach((button) => switchClass(button, true)); redraw(); });
  element("none").addEventListener("click", () => { switches.forEach((button) => switchClass(button, false)); redraw(); });

  const drawnRows = new Map(data.row.map((row, i) => [row, i]));
  for (const button of document.querySelectorAll("button.find")) {
    const i = drawnRows.get(Number(button.dataset.row));
    if (i === undefined) { button.disabled = true; continue; }
    button.addEventListener("click", () => {
      switches.forEach((one) => { if (Number(one.dataset.class) === data.code[i]) switchClass(one, true); });
      setRound(last); showRow(i);
      element("map").scrollIntoView({ block: "start" });
      canvas.focus({ preventScroll: true });
    });
  }

  function resize() {
    const box = canvas.parentElement.getBoundingClientRect();
    width = Math.max(1, box.width - 2); height = Math.max(1, box.height - 2); ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
    draw();
  }
  element("live").hidden = false;
  slider.max = Math.max(last, 1);
  readColors(); showState(); showRow(-1); resize();
  new ResizeObserver(resize).observe(canvas.parentElement);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColors(); redraw(); });
})();
