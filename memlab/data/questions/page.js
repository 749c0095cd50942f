"use strict";
// Texts of the log are only ever set as text. Each change is sent at once, one after another, and is saved when it is answered.
const box = id => document.getElementById(id);
let state = null, question = null, here = 0, results = [], sent = Promise.resolve(), pending = 0, timer = 0, steps = 0;
const undo = [];

async function ask(path, body) {
  const answer = await fetch(path, body && {method: "POST", body: JSON.stringify(body), headers: {"Content-Type": "application/json"}});
  const value = await answer.json().catch(() => ({error: `the answer was ${answer.status}`}));
  if (!answer.ok) throw Object.assign(new Error(value.error), {status: answer.status});
  return value;
}
const make = (tag, name, text) => Object.assign(document.createElement(tag), {className: name || "", textContent: text ?? ""});
const plural = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
const key = turn => JSON.stringify([turn.session, turn.turn]);
const brief = name => state.entries.find(entry => entry.name === name);
const ended = "Not saved: the command has ended. Start it again, and use the page that it opens.";

function tell(text) { box("notice").textContent = text; box("notice").hidden = !text; }
function fail(error) {
  box("saved").textContent = error.status ? "Not saved." : ended;
  box("saved").classList.add("bad");
  if (error.status) tell(error.message);
}
function saved() {
  box("saved").classList.remove("bad");
  box("saved").textContent = pending ? "Saving…" : `All changes are saved in ${state.file}.`;
}

async function refresh() {
  state = await ask("state");
  showState();
  if (state.waiting) setTimeout(poll, 3000);
}
async function poll() {  // candidates by meaning have come
  await refresh();
  if (question && !pending && !timer) load(question.name, true);
}
async function load(name, same) {
  const mine = ++steps;
  try {
    const loaded = await ask(`question?name=${encodeURIComponent(name)}`);
    if (mine !== steps || pending) return;
    const at = same && turns()[here];
    question = loaded;
    if (!same) { results = []; box("search").value = ""; tell(""); }
    here = at ? Math.max(0, turns().findIndex(turn => key(turn) === key(at))) : Math.max(0, question.candidates.findIndex(turn => turn.source));
    show(!same);
    showState();
  } catch (error) { fail(error); }
}

const turns = () => [...results, ...(question ? question.candidates : [])];
const marks = () => new Set(question.evidence.map(key));
const isMarked = (turn, marked) => turn.copies.some(copy => marked.has(key(copy)));
const copyOf = one => ({name: one.name, status: one.status, text: one.text, answer: one.answer, evidence: [...one.evidence]});

function change(parts, remember = true) {
  if (remember) undo.push(copyOf(question));
  Object.assign(question, parts);
  send(copyOf(question));
}
function send(wanted) {  // after what was sent before, so that it has the newest revision
  pending++;
  saved();
  sent = sent.then(async () => {
    try {
      const answer = await ask("change", {...wanted, revision: brief(wanted.name).revision});
      brief(wanted.name).revision = answer.revision;
      if (pending === 1 && question && question.name === answer.name && !timer) { question = answer; show(false); }
      pending--;
      await refresh();
      saved();
    } catch (error) {
      pending = Math.max(0, pending - 1);
      fail(error);
      if (error.status === 409) { await refresh(); await load(question.name, true); box("saved").classList.add("bad"); }
    }
  });
  show(false);
}

function showState() {
  const done = state.entries.filter(entry => entry.status !== "proposed").length;
  const ready = state.entries.filter(entry => entry.status === "kept" && entry.evidence).length;
  box("folder").textContent = state.folder;
  box("plan").textContent = state.plan;
  box("assumption").textContent = state.assumption;
  box("bar").value = state.entries.length ? done / state.entries.length : 0;
  box("count").textContent = `${plural(ready, "question")} with evidence; ${done} of ${state.entries.length} decided`;
  box("next").hidden = !ready;
  box("next").querySelector("code").textContent = state.next;
  box("source").textContent = state.source;
  box("none").hidden = state.entries.length > 0;
  box("search").placeholder = `words, or a part of one, in ${plural(state.turns, "turn")}`;
  box("pool").textContent = state.fault ? `Search by meaning failed (${state.fault}); these turns share words with the question.`
    : state.waiting ? "These turns share words with the question; those of search by meaning come as soon as they are found."
      : `The first ${state.depth} turns of search by words, by meaning, and by both, in the order of the log.`;
  const list = box("list"), top = list.scrollTop;
  list.replaceChildren(...state.entries.map(entry => {
    const item = make("li", entry.status === "kept" && !entry.evidence ? "bare" : entry.status), button = make("button");
    button.type = "button";
    button.append(make("i", "", {kept: entry.evidence ? "✓" : "!", skipped: "–", proposed: "○"}[entry.status]), make("span", "", entry.text));
    button.title = {kept: entry.evidence ? "kept, with evidence" : "kept; no turn is marked", skipped: "skipped", proposed: "proposed"}[entry.status];
    if (question && entry.name === question.name) button.setAttribute("aria-current", "true");
    button.onclick = () => open(entry.name);
    item.append(button);
    return item;
  }));
  list.scrollTop = top;
  const corpus = box("own-corpus");
  corpus.hidden = state.corpora.length < 2;
  if (!corpus.options.length) corpus.append(...state.corpora.map(name => new Option(name, name)));
}

function show(fields) {
  box("work").hidden = !question;
  if (!question) return;
  const bare = question.status === "kept" && !question.evidence.length;
  const at = state.entries.findIndex(entry => entry.name === question.name);
  if (fields || document.activeElement !== box("text")) box("text").value = question.text;
  if (fields || document.activeElement !== box("answer")) box("answer").value = question.answer;
  box("state").className = `chip ${bare ? "bare" : question.status}`;
  box("state").textContent = bare ? "kept; mark a turn, or it measures nothing" : question.status;
  box("place").textContent = `${at + 1} of ${state.entries.length}${state.corpora.length > 1 ? `, about ${question.corpus}` : ""}`;
  box("from").hidden = !question.source;
  if (question.source) {
    const from = question.source;
    box("from").firstElementChild.replaceChildren(make("b", "", from.speaker), make("span", "", from.said_on || "no date"), make("span", "", from.title));
    box("from").lastElementChild.textContent = from.text;
  }
  const whole = question.evidence.filter(one => one.turn === null).map(one => one.session);
  box("evidence").textContent = question.evidence.length ? `${plural(question.evidence.length - whole.length, "turn")} marked as evidence` +
    (whole.length ? `, and as a whole: ${whole.join(", ")}` : "") :
    question.candidates.some(turn => turn.source) ? "Nothing is marked. Accept marks the turn that the question was proposed from."
      : "Nothing is marked: mark each turn that answers it.";
  document.querySelector("[data-key=u]").disabled = !undo.length;
  const marked = marks();
  box("results").replaceChildren(...results.map((turn, i) => card(turn, i, marked)));
  box("candidates").replaceChildren(...question.candidates.map((turn, i) => card(turn, results.length + i, marked)));
}
function card(turn, i, marked) {
  const on = isMarked(turn, marked), item = make("li", `turn${i === here ? " here" : ""}${on ? " evidence" : ""}`), where = make("p", "where");
  const mark = make("button", "tool", on ? "✓ evidence" : "mark");
  mark.type = "button";
  mark.setAttribute("aria-pressed", on);
  mark.setAttribute("aria-label", `evidence: ${turn.speaker}, ${turn.said_on || "no date"}, turn ${turn.turn}`);
  where.append(make("b", "", turn.speaker), make("span", "", turn.said_on || "no date"), make("span", "", `${turn.title}, turn ${turn.turn}`));
  if (turn.source) where.append(make("span", "chip", "proposed from this"));
  if (turn.copies.length > 1) {
    const chip = make("span", "chip", `same text ${turn.copies.length} times`);
    chip.title = turn.copies.map(copy => `${copy.said_on} ${copy.session}, turn ${copy.turn}`).join("\n");
    where.append(chip);
  }
  where.append(mark);
  item.append(near(turn.before, "before"), where, said(turn), near(turn.after, "after"));
  item.onclick = event => {
    if (!getSelection().isCollapsed || event.target.closest(".unfold, .near")) return;
    here = i;
    toggle(turn);
  };
  return item;
}
function near(turn, name) {
  if (!turn) return "";
  const line = make("p", `near ${name}`, `${turn.speaker}: ${turn.text}`);
  line.onclick = () => line.classList.toggle("open");
  return line;
}
function said(turn) {
  const text = make("p", "said", turn.text), parts = document.createDocumentFragment();
  parts.append(text);
  if (turn.text.length > 900 || turn.text.split("\n").length > 10) {
    const open = make("button", "tool unfold", turn.open ? "less" : "whole turn");
    text.classList.toggle("long", !turn.open);
    open.type = "button";
    open.onclick = () => { turn.open = !turn.open; text.classList.toggle("long", !turn.open); open.textContent = turn.open ? "less" : "whole turn"; };
    parts.append(open);
  }
  return parts;
}

function toggle(turn) {
  if (!turn) return;
  const keys = new Set(turn.copies.map(key)), rest = question.evidence.filter(one => !keys.has(key(one)));
  const on = isMarked(turn, marks());
  change({evidence: on ? rest : [...rest, ...turn.copies.map(({session, turn}) => ({session, turn}))], status: "kept"});
}
function accept() {
  const source = question.candidates.find(turn => turn.source);
  const evidence = question.evidence.length || !source ? question.evidence : source.copies.map(({session, turn}) => ({session, turn}));
  change({status: "kept", evidence});
  if (evidence.length) decided();
}
function decided() {  // to the next proposal, or the next question
  const at = state.entries.findIndex(entry => entry.name === question.name);
  const next = [...state.entries.slice(at + 1), ...state.entries.slice(0, at)].find(entry => entry.status === "proposed");
  if (next) open(next.name); else step(1);
}
function open(name) {
  flush();
  sent = sent.then(() => load(name));
  scrollTo({top: Math.min(scrollY, box("work").offsetTop - 20)});
}
function step(by) {
  const at = state.entries.findIndex(entry => entry.name === question.name) + by;
  if (state.entries[at]) open(state.entries[at].name);
}
function move(by) {
  here = Math.max(0, Math.min(turns().length - 1, here + by));
  show(false);
  document.querySelector(".turn.here")?.scrollIntoView({block: "nearest"});
}
async function back() {
  flush();
  const before = undo.pop();
  if (!before) return;
  send(before);
  if (before.name === question.name) { Object.assign(question, before); show(true); } else open(before.name);
}
function focus(id) { box(id).focus(); box(id).select(); }

const keys = {j: () => move(1), k: () => move(-1), x: () => toggle(turns()[here]), a: accept, u: back, n: () => step(1), p: () => step(-1),
  s: () => { change({status: question.status === "skipped" ? "kept" : "skipped"}); if (question.status === "skipped") decided(); },
  e: () => focus("text"), r: () => focus("answer"), "/": () => focus("search"), o: () => focus("own-text")};
document.addEventListener("keydown", event => {
  if (event.target.matches("input, textarea, select")) { if (event.key === "Escape") event.target.blur(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key] || !(question || event.key === "o")) return;
  event.preventDefault();
  keys[event.key]();
});
for (const button of document.querySelectorAll("[data-key]")) button.onclick = () => { if (question) keys[button.dataset.key](); button.blur(); };

function flush() {  // sends what was typed
  if (!timer) return;
  clearTimeout(timer);
  timer = 0;
  const text = box("text").value.trim() || question.text, answer = box("answer").value.trim();
  if (text !== question.text || answer !== question.answer) change({text, answer, status: "kept"});
}
for (const name of ["text", "answer"]) {
  box(name).oninput = () => { clearTimeout(timer); timer = setTimeout(flush, 600); };
  box(name).onchange = flush;
  box(name).onkeydown = event => { if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); event.target.blur(); } };
}
let searching = 0;
box("search").oninput = () => {
  clearTimeout(searching);
  searching = setTimeout(async () => {
    const text = box("search").value.trim(), name = question.name;
    const found = text ? await ask(`search?name=${encodeURIComponent(name)}&text=${encodeURIComponent(text)}`).catch(fail) : {turns: [], count: 0};
    if (!found || box("search").value.trim() !== text || question.name !== name) return;
    results = found.turns;
    here = 0;
    box("found").hidden = !text;
    box("found-head").textContent = found.count > results.length ? `The first ${results.length} of ${plural(found.count, "turn")} found` : `${plural(found.count, "turn")} found`;
    show(false);
  }, 150);
};
box("search").onkeydown = event => { if (event.key === "Enter") event.target.blur(); };
box("own").onsubmit = async event => {
  event.preventDefault();
  const text = box("own-text").value.trim();
  if (!text) return;
  flush();
  try {
    const answer = await ask("add", {corpus: box("own-corpus").value || state.corpora[0], text});
    box("own-text").value = "";
    await refresh();
    open(answer.name);
  } catch (error) { fail(error); }
};
addEventListener("focus", () => { if (state && !pending && !timer) poll().catch(fail); });  // another window may have changed it
addEventListener("pagehide", flush);
addEventListener("beforeunload", event => { flush(); if (pending || box("saved").classList.contains("bad")) event.preventDefault(); });
if (matchMedia("(max-width: 860px)").matches) box("all").open = false;
refresh().then(() => {
  saved();
  const first = state.entries.find(entry => entry.status === "proposed") || state.entries[0];
  if (first) load(first.name);
}).catch(fail);
