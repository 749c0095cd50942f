"use strict";
// Draws the charts, sorts the tables and runs the drill-down. Data becomes text nodes only, never markup.
(function () {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const byId = (id) => document.getElementById(id);
  function el(tag, className, text) {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  }

  // ---- charts
  const charts = read("charts");
  const config = { displayModeBar: false, responsive: true };
  function draw(name, figure) {
    const target = byId("chart-" + name);
    if (target && figure) Plotly.react(target, figure.data, figure.layout, config);
  }
  for (const name of ["heat", "tokens", "why"]) {
    const select = document.querySelector(`select[data-chart=${name}]`);
    if (!select) continue;
    select.addEventListener("change", () => draw(name, charts[name][select.value]));
    draw(name, charts[name][select.value]);
  }
  draw("paired", charts.paired);
  draw("reliability", charts.reliability);
  draw("settings", charts.settings);

  // ---- sortable tables
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const numeric = head.classList.contains("num");
      const now = head.getAttribute("aria-sort");
      const order = now ? (now === "ascending" ? "descending" : "ascending") : numeric ? "descending" : "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const key = (row) => row.cells[column].dataset.sort ?? row.cells[column].textContent.trim();
      const number = (text) => parseFloat(text.replace("−", "-").replace("+", "").replace("<", "").replaceAll(",", ""));
      const rows = [...table.tBodies[0].rows].sort((a, b) => {
        if (!numeric) return sign * key(a).localeCompare(key(b));
        const [x, y] = [number(key(a)), number(key(b))];
        return isNaN(x) || isNaN(y) ? isNaN(x) - isNaN(y) : sign * (x - y);
      });
      table.tBodies[0].append(...rows);
    }));
  }

  // ---- drill-down
  const drill = read("drill");
  const PAGE = 40;
  const state = { shown: PAGE, open: new Set() };
  const controls = { text: byId("f-text"), type: byId("f-type"), a: byId("f-a"), b: byId("f-b"),
    metric: byId("f-metric"), differ: byId("f-differ") };
  function fill(select, labels, chosen) {
    labels.forEach((label, i) => {
      const option = el("option", "", label);
      option.value = i;
      option.selected = i === chosen;
      select.append(option);
    });
  }
  const names = drill.arms.map((arm) => arm.name + (arm.oracle ? " (looks at gold)" : ""));
  const indexOf = (name, fallback) => {
    const index = drill.arms.findIndex((arm) => arm.name === name);
    return index < 0 ? fallback : index;
  };
  fill(controls.a, names, indexOf(drill.first, 0));
  fill(controls.b, names, indexOf(drill.second, Math.min(1, names.length - 1)));
  fill(controls.metric, drill.metrics, 0);
  for (const type of [...new Set(drill.questions.map((q) => q.type))].filter(Boolean).sort()) {
    controls.type.append(el("option", "", type));
  }
  if (drill.left_out) {
    byId("f-left").hidden = false;
    byId("f-left").textContent = `${drill.left_out} more questions are left out to keep this file small, ` +
      "first those on which all arms agree. Their figures are in questions.parquet of each run folder.";
  }

  function matching() {
    const words = controls.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const [a, b, m] = [+controls.a.value, +controls.b.value, +controls.metric.value];
    return drill.questions.filter((q) => {
      if (controls.type.value && q.type !== controls.type.value) return false;
      if (controls.differ.checked && !(q.values[a]?.[m] !== q.values[b]?.[m])) return false;
      const searched = (`#${q.q} ` + q.text + " " + q.answer).toLowerCase();
      return words.every((word) => word.startsWith("#") ? word === `#${q.q}` : searched.includes(word));
    });
  }

  function show(value) {
    return value === null || value === undefined ? "–" : Number.isInteger(value) ? String(value) : value.toFixed(3);
  }

  function dots(question) {
    const m = +controls.metric.value;
    const strip = el("span", "dots");
    strip.setAttribute("role", "img");
    strip.setAttribute("aria-label", names.map((name, i) => `${name}: ${show(question.values[i]?.[m])}`).join("; "));
    names.forEach((name, i) => {
      const value = question.values[i]?.[m];
      const dot = el("i", value === null || value === undefined ? "none" : value >= 1 ? "one" : value > 0 ? "part" : "");
      if (i === +controls.a.value || i === +controls.b.value) dot.classList.add("pick");
      dot.title = `${name}: ${show(value)}`;
      strip.append(dot);
    });
    return strip;
  }

  function unit(row, rank, selected) {
    const [number, session, date, tokens, score, gold, text, ...signals] = row;
    const item = el("li", (gold ? "gold " : "") + (selected ? "in" : "out"));
    item.append(el("span", "rank", String(rank)));
    const body = el("div");
    const words = el("p", "text", drill.texts[text]);
    words.dir = "auto";
    const meta = el("p", "meta");
    if (gold) meta.append(el("span", "tag", selected ? "evidence · " : "evidence, cut · "));
    const facts = [`session ${session}`, date, tokens === null ? "" : `${tokens} tokens`, `score ${show(score)}`];
    signals.forEach((value, i) => { if (value !== null) facts.push(`${drill.signals[i]} ${show(value)}`); });
    meta.append(facts.filter(Boolean).join(" · "));
    meta.title = `unit ${number}`;
    body.append(words, meta);
    item.append(body);
    return item;
  }

  function side(question, arm) {
    const box = el("div");
    const head = el("p", "side-head", names[arm]);
    const values = drill.metrics.map((metric, i) => `${metric} ${show(question.values[arm]?.[i])}`).join(" · ");
    head.append(el("small", "", values));
    box.append(head);
    const answer = question.answers?.[arm];
    if (answer) {
      const [text, verdicts] = answer;
      const line = el("p", "answer given");
      line.dir = "auto";
      line.append(el("b", "", `Answer${verdicts ? ` (${verdicts})` : ""}`), text);
      box.append(line);
    }
    const which = question.which[arm];
    if (!which) {
      box.append(el("p", "hint", "No ranking of this question is stored for this arm."));
      return box;
    }
    const [ranking, chosen] = [question.rankings[which[0]], which[1]];
    const list = el("ol", "units");
    const last = chosen.lastIndexOf("1");
    ranking.forEach((row, i) => {
      if (i === last + 1) list.append(el("li", "cut", i ? `cut here: ${chosen.split("1").length - 1} shown to the reader` : "nothing selected"));
      list.append(unit(row, i + 1, chosen[i] === "1"));
    });
    if (last === ranking.length - 1) list.append(el("li", "cut", `nothing cut among these ${ranking.length}`));
    box.append(list);
    return box;
  }

  function detail(question) {
    const box = el("div", "detail");
    const answer = el("p", "answer");
    answer.dir = "auto";
    answer.append(el("b", "", question.abstain ? "Gold: no answer is possible" : "Gold answer"), question.answer);
    box.append(answer);
    if (question.error) box.append(el("p", "notice", `An audit questions this label: ${question.error}`));
    if (!question.scored) box.append(el("p", "hint", "Not counted in the retrieval averages."));
    const sides = el("div", "sides");
    for (const arm of new Set([+controls.a.value, +controls.b.value])) sides.append(side(question, arm));
    box.append(sides);
    return box;
  }

  function item(question) {
    const li = el("li");
    li.dataset.question = question.q;
    const open = state.open.has(question.q);
    const row = el("button", "row");
    row.type = "button";
    row.setAttribute("aria-expanded", String(open));
    const text = el("span", "q", question.text);
    text.dir = "auto";
    const end = el("span", "side");
    if (question.error) end.append(el("span", "chip err", "label in doubt"));
    end.append(el("span", "chip", question.type), dots(question));
    row.append(el("span", "id", `#${question.q}`), text, end);
    row.addEventListener("click", () => {
      if (state.open.delete(question.q)) li.lastChild.remove();
      else { state.open.add(question.q); li.append(detail(question)); }
      row.setAttribute("aria-expanded", String(state.open.has(question.q)));
    });
    li.append(row);
    if (open) li.append(detail(question));
    return li;
  }

  function refresh() {
    const matches = matching();
    byId("list").replaceChildren(...matches.slice(0, state.shown).map(item));
    byId("f-count").textContent = `${matches.length} of ${drill.questions.length} questions. ` +
      "Each dot is an arm, in the order of the list: full = 1, half = in part, empty = 0, dotted = undefined; a ring marks the two compared.";
    byId("more").hidden = matches.length <= state.shown;
  }
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  // "input" for the text field: "change" would fire when it loses focus, and rebuild the list under the click.
  for (const [name, control] of Object.entries(controls)) {
    control.addEventListener(name === "text" ? "input" : "change", () => { state.shown = PAGE; refresh(); });
  }
  byId("more").addEventListener("click", () => { state.shown += PAGE; refresh(); });
  refresh();
})();
