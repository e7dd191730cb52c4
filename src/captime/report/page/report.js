"use strict";
(function () {
  // Words under the pointer. They are text, never markup.
  const tip = document.getElementById("tip");
  function show(words, event) {
    tip.textContent = words;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, window.innerWidth - box.width - 6)) + "px";
    tip.style.top = Math.max(4, event.clientY - box.height - 12 < 4 ? event.clientY + 18 : event.clientY - box.height - 12) + "px";
  }
  function cell(group, event) {
    const svg = group.ownerSVGElement, at = svg.createSVGPoint();
    at.x = event.clientX; at.y = event.clientY;
    const p = at.matrixTransform(svg.getScreenCTM().inverse());
    const grid = group.grid || (group.grid = JSON.parse(group.getAttribute("data-grid")));
    const column = Math.floor((p.x - grid.box[0]) / grid.box[2]), row = Math.floor((p.y - grid.box[1]) / grid.box[3]);
    if (row < 0 || column < 0 || row >= grid.rows.length || column >= grid.columns.length) return null;
    const code = grid.codes[row].charCodeAt(column) - 97;
    return grid.rows[row] + "\n" + grid.columns[column] + "\n" + (grid.kinds[code] || "not run");
  }
  function point(event) {
    const at = event.target;
    const marked = at.closest ? at.closest("[data-tip]") : null;
    if (marked) return show(marked.getAttribute("data-tip"), event);
    const group = at.closest ? at.closest("[data-grid]") : null;
    const words = group ? cell(group, event) : null;
    if (words) return show(words, event);
    tip.hidden = true;
  }
  document.addEventListener("pointermove", point);
  document.addEventListener("pointerdown", point);
  document.addEventListener("scroll", function () { tip.hidden = true; }, true);

  // One of several charts at a time.
  for (const select of document.querySelectorAll("select.choose")) {
    select.addEventListener("change", function () {
      const boxes = document.getElementById(select.dataset.for).querySelectorAll(".chart-box");
      boxes.forEach(function (box, place) { box.classList.toggle("later", String(place) !== select.value); });
    });
  }

  // Tables to copy and to save. Texts that a spreadsheet would take for a formula are quoted.
  function rows(name) {
    const table = document.getElementById("table-" + name);
    const head = Array.from(table.tHead.rows[0].cells, function (each) { return each.dataset.name; });
    const body = Array.from(table.tBodies[0].rows, function (row) {
      return Array.from(row.cells, function (each) {
        if (each.dataset.value !== undefined) return each.dataset.value;
        return /^[=+\-@\t\r]/.test(each.textContent) ? "'" + each.textContent : each.textContent;
      });
    });
    return [head].concat(body);
  }
  function csv(name) {
    return rows(name).map(function (row) {
      return row.map(function (text) { return /[",\n\r]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text; }).join(",");
    }).join("\r\n") + "\r\n";
  }
  document.addEventListener("click", function (event) {
    const copy = event.target.dataset && event.target.dataset.copy, save = event.target.dataset && event.target.dataset.save;
    if (copy) {
      const text = rows(copy).map(function (row) { return row.join("\t"); }).join("\n");
      const done = function () { event.target.textContent = "Copied"; };
      if (navigator.clipboard) { navigator.clipboard.writeText(text).then(done, function () { fallback(text); done(); }); } else { fallback(text); done(); }
    }
    if (save) {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob(["\ufeff" + csv(save)], { type: "text/csv" }));
      link.download = save + ".csv";
      link.click();
      setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
    }
  });
  function fallback(text) {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.appendChild(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
})();
