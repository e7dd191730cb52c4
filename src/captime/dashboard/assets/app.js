"use strict";
(function () {
  const byId = function (id) { return document.getElementById(id); };
  // Whatever comes from the server becomes text, or one of these elements with these attributes.
  const TAGS = new Set(["svg", "g", "path", "line", "rect", "circle", "text"]);
  const ATTRIBUTES = new Set(["viewBox", "width", "height", "class", "role", "aria-label", "d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r",
    "text-anchor", "transform", "stroke-width", "data-tip"]);
  function drawn(tree) {
    if (typeof tree === "string") return document.createTextNode(tree);
    if (!TAGS.has(tree[0])) return document.createTextNode("");
    const node = document.createElementNS("http://www.w3.org/2000/svg", tree[0]);
    for (const name of Object.keys(tree[1])) if (ATTRIBUTES.has(name)) node.setAttribute(name, tree[1][name]);
    for (const child of tree.slice(2)) node.appendChild(drawn(child));
    return node;
  }
  function made(tag, words, kind) {
    const node = document.createElement(tag);
    if (words !== undefined) node.textContent = words;
    if (kind) node.className = kind;
    return node;
  }

  function table(id, columns, rows, none) {
    const body = [];
    if (rows.length) {
      const head = made("tr", undefined, "head");
      columns.forEach(function (column) { head.appendChild(made("th", column[0])); });
      body.push(head);
      rows.forEach(function (row) {
        const line = made("tr");
        columns.forEach(function (column) {
          const short = ["config", "words", "more", "instance"].includes(column[1]) ? "" : "short";
          const kind = column[1] === "verdict" && /^[a-z]+$/.test(row.verdict) ? "short verdict-" + row.verdict : short;
          line.appendChild(made("td", String(row[column[1]]), ("of-" + column[1] + " " + kind).trim()));
        });
        body.push(line);
      });
    } else {
      const line = made("tr");
      line.appendChild(made("td", none, "none"));
      body.push(line);
    }
    byId(id).replaceChildren.apply(byId(id), body);
  }

  let offset = 0;
  function span(seconds) {
    if (seconds < 0.9995) return (1000 * seconds).toFixed(0) + " ms";
    return seconds < 60 ? seconds.toFixed(1) + " s" : seconds < 3600 ? (seconds / 60).toFixed(1) + " min" : (seconds / 3600).toFixed(1) + " h";
  }

  // What runs where: one tile for each slot, with a bar that grows towards the captime.
  let clocks = [];
  function tile(run) {
    const box = made("div", undefined, run.config === undefined ? "slot idle" : "slot");
    box.setAttribute("role", "listitem");
    const first = made("div", undefined, "line");
    box.appendChild(first);
    const where = made("span", run.slot, "where");
    where.title = run.slot;
    first.appendChild(where);
    if (run.config === undefined) { first.appendChild(made("span", "idle", "age")); return box; }
    const age = made("span", "", "age");
    first.appendChild(age);
    const name = made("div", run.config, "name"), place = made("div", run.instance, "place");
    name.title = run.config;
    place.title = run.instance;
    box.append(name, place);
    const rail = made("div", undefined, "rail"), bar = made("div", undefined, "bar");
    rail.appendChild(bar);
    if (run.captime) box.appendChild(rail);
    clocks.push({ run: run, age: age, bar: bar });
    return box;
  }
  function board(live) {
    offset = live.now_ms - Date.now();
    clocks = [];
    byId("board").textContent = live.board;
    byId("slots").replaceChildren.apply(byId("slots"), live.slots.map(tile));
    ages();
  }
  function ages() {
    clocks.forEach(function (each) {
      // Seen so far, and the time since then; the campaign tells the truth again every half second.
      const seconds = each.run.seen + Math.max(0, (Date.now() + offset - each.run.seen_ms) / 1000);
      const shown = each.run.captime ? Math.min(seconds, each.run.captime) : seconds;
      each.age.textContent = span(shown) + (each.run.limit ? " of " + each.run.limit : "");
      if (each.run.captime) each.bar.style.width = (100 * shown / each.run.captime).toFixed(1) + "%";
    });
  }

  function show(state) {
    document.title = "captime " + state.title;
    byId("title").textContent = state.title;
    byId("statement").textContent = state.statement;
    byId("tiles").replaceChildren.apply(byId("tiles"), state.tiles.map(function (tile) {
      const box = made("div");
      box.appendChild(made("dt", tile[0]));
      box.appendChild(made("dd", tile[1]));
      return box;
    }));
    byId("figures").replaceChildren.apply(byId("figures"), state.figures.map(function (figure) {
      const section = made("section", undefined, "figure");
      section.id = figure.name;
      section.appendChild(made("h2", figure.title));
      figure.charts.forEach(function (chart) { section.appendChild(drawn(chart)); });
      section.appendChild(made("p", figure.caption, "caption"));
      return section;
    }));
    byId("warnings").hidden = state.warnings.length === 0;
    byId("warnings").replaceChildren.apply(byId("warnings"), state.warnings.map(function (words) { return made("li", words); }));
    state.recent.forEach(function (run) {
      run.took = run.verdict === "capped" ? run.time : run.time + " of " + run.captime;
      run.more = [run.words, run.answer, run.where, run.flags.join(" ")].filter(Boolean).join(" · ");
    });
    table("recent", [["configuration", "config"], ["instance", "instance"], ["verdict", "verdict"], ["time", "took"], ["", "more"]], state.recent, "none yet");
    table("log", [["UTC", "at"], ["what", "kind"], ["", "words"]], state.log, "nothing yet");
  }
  function sign(words, kind) {
    byId("state").textContent = words;
    byId("state").className = "state " + (/^[a-z]+$/.test(kind) ? kind : "");
  }

  let seen = 0, width = 0, failures = 0, reading = 0;
  async function look() {
    const wide = Math.floor(byId("figures").clientWidth || document.body.clientWidth - 30);
    const column = window.matchMedia("(min-width: 62rem)").matches ? Math.floor((wide - 32) / 2) : wide;
    const asked = Math.floor(column / 20) * 20;
    if (asked !== width) { width = asked; seen = 0; }
    try {
      const answer = await fetch("/state?width=" + width + "&seen=" + seen, { credentials: "same-origin", cache: "no-store" });
      if (answer.status === 403) { sign("no entry", "trouble"); byId("statement").textContent = "Open the address that captime dashboard printed: it lets you in."; return 5000; }
      if (!answer.ok) throw new Error(String(answer.status));
      const state = await answer.json();
      failures = 0;
      if (state.trouble) { sign("trouble", "trouble"); byId("statement").textContent = state.trouble; return 3000; }
      if (!state.same) { show(state); seen = state.version; reading = state.reading; }
      sign(reading < 1 ? "reading, " + Math.floor(100 * reading) + " %" : state.live.state, state.live.state);
      board(state.live);
    } catch (error) {
      failures += 1;
      if (failures > 2) sign("no answer", "trouble");
      return 2000;
    }
    return document.hidden ? 5000 : 800;
  }
  async function follow() {
    const pause = await look();
    window.setTimeout(follow, pause);
  }
  async function enter() {
    const found = /^#token=([A-Za-z0-9_-]+)$/.exec(window.location.hash);
    if (found) {
      window.history.replaceState(null, "", "/");
      await fetch("/enter", { headers: { "X-Captime-Token": found[1] }, credentials: "same-origin", cache: "no-store" });
    }
    follow();
    window.setInterval(ages, 500);
  }

  const tip = byId("tip");
  document.addEventListener("pointermove", function (event) {
    const marked = event.target.closest ? event.target.closest("[data-tip]") : null;
    tip.hidden = !marked;
    if (!marked) return;
    tip.textContent = marked.getAttribute("data-tip");
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, window.innerWidth - box.width - 6)) + "px";
    tip.style.top = Math.max(4, event.clientY - box.height - 12) + "px";
  });
  enter();
})();
