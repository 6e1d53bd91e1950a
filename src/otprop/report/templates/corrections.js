(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const download = document.getElementById("download");
  for (const part of document.querySelectorAll(".action")) part.hidden = false;
  for (const button of document.querySelectorAll("button.explain")) {
    const row = document.getElementById(button.getAttribute("aria-controls"));
    button.addEventListener("click", () => {
      row.hidden = !row.hidden;
      button.setAttribute("aria-expanded", String(!row.hidden));
    });
  }
  if (!download) return;

  const rows = Array.from(document.querySelectorAll("tr[data-review]"), (line) => ({
    line, number: line.dataset.review, code: Number(line.dataset.code),
    confirm: line.querySelector("input.confirm"), select: line.querySelector("select.correct"),
    other: line.querySelector("input.new-class"),
  }));
  const reset = (row) => { row.select.value = String(row.code); row.confirm.checked = false; if (row.other) row.other.value = ""; };
  const typed = (row) => row.other ? row.other.value.trim() : "";
  const changed = (row) => typed(row) !== "" || Number(row.select.value) !== row.code;
  const count = (n, what) => n + " label" + (n === 1 ? " " : "s ") + what;

  function update() {
    for (const row of rows) {
      row.line.classList.toggle("changed", changed(row));
      row.line.classList.toggle("confirmed", row.confirm.checked);
    }
    const n_changed = rows.filter(changed).length, n_confirmed = rows.filter((row) => row.confirm.checked).length;
    document.getElementById("summary").textContent = count(n_changed, "changed") + ", " + n_confirmed + " marked as right.";
    download.disabled = n_changed + n_confirmed === 0;
  }
  for (const row of rows) {
    if (row.code < 0) row.select.add(new Option("choose a label", "-1"));
    data.classes.forEach((name, code) => row.select.add(new Option(name, String(code))));
    reset(row);
    row.select.addEventListener("change", () => { if (changed(row)) row.confirm.checked = false; update(); });
    row.confirm.addEventListener("change", () => { if (row.confirm.checked) { reset(row); row.confirm.checked = true; } update(); });
    if (row.other) row.other.addEventListener("input", () => { if (typed(row)) row.confirm.checked = false; update(); });
  }
  document.getElementById("clear").addEventListener("click", () => { rows.forEach(reset); update(); });

  const quoted = (text) => /[",\r\n]|^\s|\s$/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  function csv() {
    const lines = rows.filter((row) => changed(row) || row.confirm.checked).map((row) => [
      row.number, typed(row) || data.labels[Number(row.select.value)], row.code < 0 ? "" : data.labels[row.code], data.file_digest]);
    return [["row", "label", "was", "file_digest"], ...lines].map((line) => line.map(quoted).join(",") + "\n").join("");
  }
  download.addEventListener("click", () => {
    const link = document.createElement("a"), address = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
    link.href = address; link.download = "corrections.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  });
  update();
})();
