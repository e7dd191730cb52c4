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
      boxes.forEach(function (box) { box.classList.toggle("later", box.dataset.choice !== select.value); });
    });
  }

  // Any two of several: marks, words and axis labels are made anew; names stay text.
  const SHAPES = {
    circle: function (x, y, r) { return "M" + (x - r).toFixed(1) + " " + y.toFixed(1) + "a" + r + " " + r + " 0 1 0 " + 2 * r + " 0a" + r + " " + r + " 0 1 0 " + -2 * r + " 0z"; },
    cross: function (x, y, r) { return "M" + (x - r).toFixed(1) + " " + (y - r).toFixed(1) + "l" + 2 * r + " " + 2 * r + "m0 " + -2 * r + "l" + -2 * r + " " + 2 * r; },
  };
  const MOST_MARKS = 1500, ANSWERED = "0", CUT = "1", FAILED = "2";
  function duration(seconds) {
    if (!seconds) return "0 s";
    const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"], [1e-3, "ms"]];
    for (const unit of units) if (seconds >= unit[0] * 0.9995) return Number((seconds / unit[0]).toPrecision(3)) + " " + unit[1];
    return Number((seconds / 1e-6).toPrecision(3)) + " µs";
  }
  function unpacked(runs) {
    const found = new Map();
    let at = 0;
    runs[0].forEach(function (step, place) { at += step; found.set(at, [runs[1][place], runs[2][place]]); });
    return found;
  }
  for (const holder of document.querySelectorAll("[data-versus]")) {
    const data = JSON.parse(holder.dataset.versus), known = data.runs.map(unpacked);
    const section = holder.closest("section"), selects = section.querySelectorAll("select.versus");
    const before = [selects[0].value, selects[1].value];
    const scale = function (seconds, from, to) { return from + (to - from) * (Math.max(Math.log10(seconds), data.ends[0]) - data.ends[0]) / (data.ends[1] - data.ends[0]); };
    const group = function (kinds) {
      if (kinds.includes(FAILED)) return 2;
      if (kinds === ANSWERED + ANSWERED) return 0;
      return kinds.includes(CUT) ? 1 : 3;
    };
    const draw = function () {
      const a = Number(selects[0].value), b = Number(selects[1].value);
      const pair = data.pairs.find(function (each) { return (each[0] === a && each[1] === b) || (each[0] === b && each[1] === a); });
      const turned = pair && pair[0] === b, common = [];
      known[a].forEach(function (run, at) { if (known[b].has(at)) common.push(at); });
      const every = Math.max(1, Math.ceil(common.length / MOST_MARKS));
      holder.querySelectorAll("svg").forEach(function (svg, copy) {
        const made = [[], [], [], []], box = data.boxes[copy];
        common.forEach(function (at, place) {
          if (place % every) return;
          const one = known[a].get(at), other = known[b].get(at), which = group(one[1] + other[1]);
          const mark = document.createElementNS("http://www.w3.org/2000/svg", "path");
          const x = scale(other[0], box[0], box[2]), y = scale(one[0], box[1], box[3]);
          mark.setAttribute("d", SHAPES[which === 2 ? "cross" : "circle"](x, y, 2.8));
          mark.setAttribute("data-tip", data.instances[at] + "\n" + data.names[a] + ": " + duration(one[0]) + ", " + data.kinds[one[1]] +
            "\n" + data.names[b] + ": " + duration(other[0]) + ", " + data.kinds[other[1]]);
          made[which].push(mark);
        });
        svg.querySelectorAll(".marks > .points").forEach(function (each, place) { each.replaceChildren.apply(each, made[place]); });
        const labels = svg.querySelectorAll(".axis-label");
        labels[0].textContent = "time of " + data.names[b];
        labels[1].textContent = "time of " + data.names[a];
      });
      let words = "They were never run on the same instance";
      if (pair) {
        const low = turned ? -pair[3] : pair[2], high = turned ? -pair[2] : pair[3], mean = turned ? -pair[4] : pair[4];
        words = "Difference in [" + low.toFixed(3) + ", " + high.toFixed(3) + "], mean " + mean.toFixed(3) + ": " +
          (low > 0 ? "the first is better, for certain" : high < 0 ? "the second is better, for certain" : "not decided") +
          ". " + pair[5].toLocaleString("en") + " common instances" + (common.length < pair[5] || every > 1 ? ", an even choice of them shown" : "");
      }
      holder.querySelector("h3").textContent = words;
      holder.querySelectorAll("svg").forEach(function (svg) { svg.setAttribute("aria-label", words); });
    };
    selects.forEach(function (select, side) {
      select.addEventListener("change", function () {
        // A configuration is not compared with itself: the two change places.
        if (selects[0].value === selects[1].value) selects[1 - side].value = before[side];
        before[0] = selects[0].value;
        before[1] = selects[1].value;
        draw();
      });
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
