"use strict";
// Sorts and exports the tables, unpacks and draws the charts, and runs the drill-down. Data becomes text nodes only,
// never markup. What is chosen stands in the address, so that it can be sent to others.
(async function () {
  const byId = (id) => document.getElementById(id);
  function el(tag, className, text) {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  }
  function button(label, act, title) {
    const node = el("button", "tool", label);
    node.type = "button";
    if (title) node.title = title;
    node.addEventListener("click", act);
    return node;
  }
  const slug = (text) => text.trim().replace(/[^\w.-]+/g, "-").replace(/^-+|-+$/g, "");
  const base = slug(document.title.split("·")[0]);

  // ---- the address: #?key=value&... holds every choice that differs from the page as it was opened first
  const chosen = new URLSearchParams(location.hash.startsWith("#?") ? location.hash.slice(2) : "");
  function remember(changes) {
    for (const [key, value] of Object.entries(changes)) {
      if (value === "" || value === null || value === undefined) chosen.delete(key); else chosen.set(key, value);
    }
    const all = chosen.toString();
    if (all || location.hash.startsWith("#?")) history.replaceState(null, "", all ? `#?${all}` : "#questions");
  }
  addEventListener("hashchange", () => { if (location.hash.startsWith("#?")) location.reload(); });

  // ---- sortable tables
  const number = (text) => parseFloat(text.replace("−", "-").replace("+", "").replace("<", "").replaceAll(",", ""));
  function sort(table, column, order) {
    const heads = [...table.tHead.rows[0].cells];
    const numeric = heads[column].classList.contains("num");
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    heads[column].setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const key = (row) => row.cells[column].dataset.sort ?? row.cells[column].textContent.trim();
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      if (!numeric) return sign * key(a).localeCompare(key(b));
      const [x, y] = [number(key(a)), number(key(b))];
      return isNaN(x) || isNaN(y) ? isNaN(x) - isNaN(y) : sign * (x - y);
    });
    table.tBodies[0].append(...rows);
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const first = head.classList.contains("num") ? "descending" : "ascending";
      const now = head.getAttribute("aria-sort");
      const order = now ? (now === "ascending" ? "descending" : "ascending") : first;
      sort(table, column, order);
      if (table.id) remember({ [table.id]: `${column}.${order}` });
    }));
    const [column, order] = (table.id && chosen.get(table.id) || "").split(".");
    if (heads[+column] && ["ascending", "descending"].includes(order)) sort(table, +column, order);
  }

  // ---- tables as CSV and LaTeX
  function save(name, type, text) {
    const link = el("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = `${base}-${slug(name)}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
  // A cell's text, its small print, and its marks of significance.
  function parts(cell) {
    const copy = cell.cloneNode(true);
    const small = copy.querySelector("small");
    const before = small && small === copy.querySelector("button, th, td")?.firstElementChild && small.nextSibling;
    const marks = [...copy.querySelectorAll("abbr")].map((mark) => mark.textContent).join("");
    const print = small ? small.textContent.trim() : "";
    copy.querySelectorAll("small, abbr").forEach((node) => node.remove());
    const text = copy.textContent.trim().replace(/\s+/g, " ");
    return { text: before ? `${print}/${text}` : text, small: before ? "" : print, marks };
  }
  const grid = (table) => [...table.rows].map((row) => [...row.cells].map(parts));
  function csv(table) {
    const rows = grid(table);
    const printed = rows[0].map((_, i) => rows.slice(1).some((row) => row[i]?.small));
    // A cell that begins like a formula gets an apostrophe: spreadsheets would run it.
    const field = (text) => `"${(/^[=+@\t]|^-(?![\d.,]+ ?%?$)/.test(text) ? "'" + text : text).replaceAll('"', '""')}"`;
    return rows.map((row, at) => row.flatMap((cell, i) => {
      const head = at === 0 && cell.small ? `${cell.text} (${cell.small})` : cell.text;
      return printed[i] ? [head, at ? cell.small : `${head}: 95 % interval`] : [head];
    }).map(field).join(",")).join("\r\n") + "\r\n";
  }
  const TEX = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "<": "$<$", ">": "$>$",
    "−": "$-$", "▲": "$\\blacktriangle$", "▼": "$\\blacktriangledown$", "△": "$\\triangle$", "▽": "$\\triangledown$", "–": "--" };
  const tex = (text) => text.replace(/[\\~^<>−▲▼△▽–&%$#_{}]/g, (char) => TEX[char] ?? `\\${char}`);
  function latex(table) {
    const rows = grid(table);
    const numeric = [...table.rows[0].cells].map((cell) => cell.classList.contains("num"));
    const line = (row) => row.map((cell) => tex(cell.text) + (cell.marks ? `\\textsuperscript{${tex(cell.marks)}}` : "")).join(" & ") + " \\\\";
    return ["% needs booktabs and amssymb; the intervals are in the CSV", `\\begin{tabular}{${numeric.map((is) => is ? "r" : "l").join("")}}`,
      "\\toprule", line(rows[0]), "\\midrule", ...rows.slice(1).map(line), "\\bottomrule", "\\end{tabular}", ""].join("\n");
  }
  for (const table of document.querySelectorAll("table.export")) {
    const name = table.dataset.name;
    const tools = el("p", "tools");
    tools.append(button("CSV", () => save(`${name}.csv`, "text/csv", csv(table)), `Save "${name}" as CSV`),
      button("LaTeX", () => save(`${name}.tex`, "text/x-tex", latex(table)), `Save "${name}" as LaTeX`));
    (table.closest(".scroll") ?? table).after(tools);
  }

  // ---- charts
  async function unpack(id) {
    const bytes = Uint8Array.from(atob(byId(id).textContent), (char) => char.charCodeAt(0));
    byId(id).textContent = "";
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }
  if (!("DecompressionStream" in window)) {
    byId("too-old").hidden = false;
    return;
  }
  const charts = JSON.parse(await unpack("charts"));
  const library = document.createElement("script");
  library.textContent = await unpack("plotly");
  document.head.append(library);
  const dark = matchMedia("(prefers-color-scheme: dark)"), narrow = matchMedia("(max-width: 640px)");
  // A chart's colours by day, and what stands for them by night.
  const NIGHT = { "#24292f": "#e8e6e1", "#57606a": "#b4bac1", "#6e7781": "#a0a7ae", "#e9e7e1": "#363b42", "#c9c6bd": "#565c64",
    "rgba(255,255,255,0.7)": "rgba(30,33,38,0.7)", "#0072B2": "#4ba3db", "#5B5B5B": "#b9b9b9", "#8C6BB1": "#b195d3" };
  // Narrower than this a chart scrolls.
  const least = { settings: (figure) => 110 * figure.data[0].x.length, why: () => 640, heat: (figure) => 190 + 104 * figure.data[0].x.length };
  function adapt(figure, night, small) {
    let text = JSON.stringify(figure);
    if (night) for (const [day, other] of Object.entries(NIGHT)) text = text.replaceAll(day, other);
    const { data, layout } = JSON.parse(text);
    if (small && layout.legend && layout.legend.orientation !== "h") {
      layout.legend = { ...layout.legend, orientation: "h", x: 0, y: -0.22, yanchor: "top" };
      layout.margin = { ...layout.margin, l: 48, r: 8 };
      layout.height += 22 * data.length;
    }
    if (small) {
      layout.font.size = 11;
      for (const line of data) if (line.mode === "lines+markers+text") line.mode = "lines+markers";
    }
    return { data, layout };
  }
  const drawn = {};
  function draw(name, figure) {
    const frame = byId("chart-" + name);
    if (!frame || !figure) return;
    drawn[name] = figure;
    const small = narrow.matches && !(name in least);
    const { data, layout } = adapt(figure, dark.matches, small);
    const target = frame.firstElementChild ?? frame.appendChild(el("div"));
    target.style.minWidth = `${least[name]?.(figure) ?? 0}px`;
    target.style.height = `${layout.height}px`; // the container decides: plotly shrinks a chart whose container has no height
    Plotly.react(target, data, layout, { displayModeBar: false, responsive: true });
  }
  function redraw() { for (const [name, figure] of Object.entries(drawn)) draw(name, figure); }
  for (const media of [dark, narrow]) media.addEventListener("change", redraw);
  for (const name of ["heat", "tokens", "why"]) {
    const select = document.querySelector(`select[data-chart=${name}]`);
    if (!select) continue;
    if (charts[name][chosen.get(name)]) select.value = chosen.get(name);
    select.addEventListener("change", () => { remember({ [name]: select.value }); draw(name, charts[name][select.value]); });
    draw(name, charts[name][select.value]);
  }
  for (const name of ["paired", "reliability", "settings"]) draw(name, charts[name]);
  for (const frame of document.querySelectorAll(".chart")) {
    const name = frame.id.replace("chart-", "");
    const tools = el("p", "tools");
    for (const format of ["png", "svg"]) {
      tools.append(button(format.toUpperCase(), () => {
        const { data, layout } = adapt(drawn[name], false, false);
        const width = Math.max(frame.firstElementChild.clientWidth, 800);
        Plotly.downloadImage({ data, layout: { ...layout, width, paper_bgcolor: "#fff" } },
          { format, width, height: layout.height, scale: format === "png" ? 2 : 1, filename: `${base}-${name}` });
      }, `Save this chart as ${format.toUpperCase()}`));
    }
    frame.after(tools);
  }

  // ---- drill-down
  const drill = JSON.parse(await unpack("drill"));
  const PAGE = 40;
  const state = { shown: PAGE, open: new Set((chosen.get("open") ?? "").split(".").filter(Boolean).map(Number)) };
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
  fill(controls.a, names, indexOf(chosen.get("arm"), indexOf(drill.first, 0)));
  fill(controls.b, names, indexOf(chosen.get("against"), indexOf(drill.second, Math.min(1, names.length - 1))));
  fill(controls.metric, drill.metrics, Math.max(0, drill.metrics.indexOf(chosen.get("by"))));
  for (const type of [...new Set(drill.questions.map((q) => q.type))].filter(Boolean).sort()) {
    controls.type.append(el("option", "", type));
  }
  controls.text.value = chosen.get("text") ?? "";
  controls.type.value = chosen.get("type") ?? "";
  controls.differ.checked = chosen.get("differ") === "1";
  function rememberFilters() {
    remember({ text: controls.text.value, type: controls.type.value, differ: controls.differ.checked ? "1" : "",
      arm: drill.arms[+controls.a.value].name, against: drill.arms[+controls.b.value].name, by: drill.metrics[+controls.metric.value] });
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
    const facts = [session < 0 ? "" : `session ${session}`, date, tokens === null ? "" : `${tokens} tokens`, `score ${show(score)}`];
    signals.forEach((value, i) => { if (value !== null) facts.push(`${drill.signals[i]} ${show(value)}`); });
    meta.append(facts.filter(Boolean).join(" · "));
    meta.title = `unit ${number}`;
    body.append(words, meta);
    item.append(body);
    return item;
  }

  function reason(question, arm) {
    const own = question.reasons?.list[question.reasons.which[arm]];
    if (!own) return null;
    const [session, turn, otherSession, otherTurn, rows, others] = own;
    const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);
    const lead = rows.reduce((sum, row) => sum + row[3], others);
    const most = Math.max(...rows.map((row) => Math.abs(row[3])), Math.abs(others), 1e-9);
    const box = el("details", "reason");
    box.append(el("summary", "", `Why session ${session}, turn ${turn} is ahead of session ${otherSession}, turn ${otherTurn} in learned fusion: lead ${signed(lead)}`));
    const table = el("table", "small");
    const head = table.createTHead().insertRow();
    for (const [name, kind] of [["feature", ""], ["first", "num"], ["second", "num"], ["adds", "num"], ["", "bars"]]) {
      head.append(el("th", kind, name));
    }
    const body = table.createTBody();
    for (const [feature, one, two, adds] of [...rows, [null, null, null, others]]) {
      const row = body.insertRow();
      row.append(el("th", "", feature === null ? "all others" : drill.features[feature]));
      for (const value of [one, two]) row.append(el("td", "num", feature === null ? "" : show(value)));
      const bar = el("i", adds < 0 ? "bar down" : "bar");
      bar.style.width = `${100 * Math.abs(adds) / most}%`;
      const cell = el("td", "bars");
      cell.append(bar);
      row.append(el("td", "num", signed(adds)), cell);
    }
    const scroll = el("div", "scroll");
    scroll.append(table);
    box.append(scroll);
    return box;
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
    const why = reason(question, arm);
    if (why) box.append(why);
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
    const link = el("a", "link", "Link to this question");
    link.href = `#?${new URLSearchParams({ arm: drill.arms[+controls.a.value].name, against: drill.arms[+controls.b.value].name, open: question.q })}`;
    link.addEventListener("click", (event) => { // the page is there already: only the address changes
      event.preventDefault();
      history.replaceState(null, "", link.href);
    });
    box.append(link);
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
      remember({ open: [...state.open].join(".") });
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
    control.addEventListener(name === "text" ? "input" : "change", () => { state.shown = PAGE; rememberFilters(); refresh(); });
  }
  byId("more").addEventListener("click", () => { state.shown += PAGE; refresh(); });
  const place = matching().findIndex((question) => state.open.has(question.q));
  if (place >= state.shown) state.shown = place + 1;
  refresh();
  if (place >= 0) byId("list").children[place].scrollIntoView({ behavior: "instant" });
  else if (location.hash.startsWith("#?")) byId("questions").scrollIntoView({ behavior: "instant" });
  document.documentElement.dataset.ready = "true";
})();
