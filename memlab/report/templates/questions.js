// The questions: unpacks what each arm found, filters, and sets two arms side by side. Data becomes text nodes only.
(async function () {
  const { byId, el, chosen, remember } = page;
  if (!("DecompressionStream" in window)) {
    byId("too-old").hidden = false;
    return;
  }
  const bytes = Uint8Array.from(atob(byId("drill").textContent), (char) => char.charCodeAt(0));
  byId("drill").textContent = "";
  const drill = JSON.parse(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text());
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
  for (const name of ["against", "differ"]) byId(name).hidden = names.length === 1;
  fill(controls.metric, drill.labels, Math.max(0, drill.metrics.indexOf(chosen.get("by"))));
  for (const type of [...new Set(drill.questions.map((q) => q.type))].filter(Boolean).sort()) {
    controls.type.append(el("option", "", type));
  }
  controls.text.value = chosen.get("text") ?? "";
  controls.type.value = chosen.get("type") ?? "";
  const pair = () => [+controls.a.value, +controls.b.value, +controls.metric.value];
  const apart = (q) => { const [a, b, m] = pair(); return q.values[a]?.[m] !== q.values[b]?.[m]; };
  const usual = names.length > 1 && drill.questions.some(apart);
  controls.differ.checked = chosen.has("differ") ? chosen.get("differ") === "1" : usual && drill.questions.every((q) => !state.open.has(q.q) || apart(q));
  function rememberFilters() {
    remember({ text: controls.text.value, type: controls.type.value, differ: controls.differ.checked === usual ? "" : +controls.differ.checked,
      arm: drill.arms[+controls.a.value].name, against: drill.arms[+controls.b.value].name, by: drill.metrics[+controls.metric.value] });
  }
  if (drill.left_out) {
    byId("f-left").hidden = false;
    byId("f-left").textContent = `${drill.left_out} more questions are left out to keep this file small, ` +
      "first those on which all arms agree. Their figures are in questions.parquet of each run folder.";
  }

  function matching() {
    const words = controls.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    return drill.questions.filter((q) => {
      if (controls.type.value && q.type !== controls.type.value) return false;
      if (controls.differ.checked && !apart(q)) return false;
      const searched = (`#${q.q} ` + q.text + " " + q.answer).toLowerCase();
      return words.every((word) => word.startsWith("#") ? word === `#${q.q}` : searched.includes(word));
    });
  }

  function show(value) {
    return value === null || value === undefined ? "–" : Number.isInteger(value) ? String(value) : value.toFixed(3);
  }

  function score(question) {
    const [a, b, m] = pair();
    const strip = el("span", "score");
    const words = [...new Set([a, b])].map((arm) => `${names[arm]}: ${show(question.values[arm]?.[m])}`).join("; ");
    strip.setAttribute("role", "img");
    strip.setAttribute("aria-label", words);
    strip.title = words;
    for (const [arm, side] of a === b ? [[a, "a"]] : [[a, "a"], [b, "b"]]) {
      const value = question.values[arm]?.[m];
      strip.append(el("i", `${side} ${value === null || value === undefined ? "none" : value >= 1 ? "one" : value > 0 ? "part" : ""}`));
    }
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

  function side(question, arm, role) {
    const box = el("div");
    const head = el("p", `side-head ${role}`, names[arm]);
    const values = drill.labels.map((label, i) => `${label}: ${show(question.values[arm]?.[i])}`).join(" · ");
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
    const [a, b] = pair();
    sides.append(side(question, a, "a"));
    if (b !== a) sides.append(side(question, b, "b"));
    box.append(sides);
    const link = el("a", "tool link", "Link to this question");
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
    if (question.type) end.append(el("span", "chip", question.type));
    end.append(score(question));
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
    const [a, b, m] = pair();
    byId("list").replaceChildren(...matches.slice(0, state.shown).map(item));
    byId("list").hidden = !matches.length;
    const of = `${matches.length} of ${drill.questions.length} questions`;
    const wins = a === b ? "" : `: ${matches.filter((q) => q.values[a]?.[m] > q.values[b]?.[m]).length} where ${names[a]} is ahead, ` +
      `${matches.filter((q) => q.values[a]?.[m] < q.values[b]?.[m]).length} where ${names[b]} is`;
    byId("f-count").textContent = `${of}${wins}. Circles${a === b ? "" : ` (${names[a]} left, ${names[b]} right)`}: full = 1, half = in part, empty = 0, dotted = undefined.`;
    byId("more").hidden = matches.length <= state.shown;
  }
  // Opens the next question (or the one before), and closes the others.
  function step(by) {
    const matches = matching();
    const open = matches.findIndex((question) => state.open.has(question.q));
    const at = open < 0 ? (by > 0 ? 0 : matches.length - 1) : open + by;
    if (!matches[at]) return;
    state.open = new Set([matches[at].q]);
    state.shown = Math.max(state.shown, at + 1);
    remember({ open: matches[at].q });
    refresh();
    byId("list").children[at].scrollIntoView();
    byId("list").children[at].firstChild.focus({ preventScroll: true });
  }
  byId("next").addEventListener("click", () => step(1));
  byId("previous").addEventListener("click", () => step(-1));
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea")) return;
    if (event.key === "n" || event.key === "p") step(event.key === "n" ? 1 : -1);
  });
  byId("plain").remove();
  byId("filters").hidden = false;
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
  else if (["text", "type", "arm", "against"].some((key) => chosen.has(key))) byId("questions").scrollIntoView({ behavior: "instant" });
  document.documentElement.dataset.ready = "true";
})();
