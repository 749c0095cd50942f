"use strict";
// Sorts and saves the tables, saves the charts, and copies texts. What is chosen stands in the address, so that it can be
// sent to others. Data becomes text nodes only, never markup.
const page = (function () {
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
      table.dataset.sorted = "yes";
      if (table.id) remember({ [table.id]: `${column}.${order}` });
    }));
    const [column, order] = (table.id && chosen.get(table.id) || "").split(".");
    if (heads[+column] && ["ascending", "descending"].includes(order)) {
      sort(table, +column, order);
      table.dataset.sorted = "yes";
    }
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
    const marks = [...copy.querySelectorAll("abbr")].map((mark) => mark.textContent).join("");
    const small = copy.querySelector("small")?.textContent.trim() ?? "";
    copy.querySelectorAll("small, abbr").forEach((node) => node.remove());
    const value = cell.dataset.sort;
    const text = cell.scope === "row" && value !== undefined ? value : copy.textContent;
    return { text: text.trim().replace(/\s+/g, " "), small, marks, value, ends: cell.dataset.ends?.split(" ") };
  }
  const grid = (table) => [...table.rows].map((row) => [...row.cells].map(parts));
  function csv(table) {
    const rows = grid(table);
    const ended = rows[0].map((_, i) => rows.slice(1).some((row) => row[i]?.ends));
    // A number is written without its unit. Spreadsheets run other text that begins like a formula: it gets an apostrophe.
    const field = (text) => {
      const [, plain] = text.replace(/^−(?=[\d.])/, "-").match(/^([+-]?[\d.,]+(?:e-?\d+)?)(?: ?%| points| tokens| units)?$/) ?? [];
      const safe = plain ? plain.replaceAll(",", "") : /^[\s"']*[=+\-@|＝＋－＠]/.test(text) ? `'${text}` : text;
      return `"${safe.replaceAll('"', '""')}"`;
    };
    return rows.map((row, at) => row.flatMap((cell, i) => {
      const head = at === 0 && cell.small ? `${cell.text} (${cell.small})` : cell.value ?? cell.text;
      return ended[i] ? [head, ...(at ? cell.ends ?? ["", ""] : [`${head} low`, `${head} high`])] : [head];
    }).map(field).join(",")).join("\r\n") + "\r\n";
  }
  const TEX = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "<": "$<$", ">": "$>$",
    "−": "$-$", "▲": "$\\blacktriangle$", "▼": "$\\blacktriangledown$", "△": "$\\triangle$", "▽": "$\\triangledown$", "–": "--" };
  const tex = (text) => text.replace(/[\\~^<>−▲▼△▽–&%$#_{}]/g, (char) => TEX[char] ?? `\\${char}`);
  function latex(table) {
    const rows = grid(table);
    const numeric = [...table.rows[0].cells].map((cell) => cell.classList.contains("num"));
    const line = (row, head) => row.map((cell) => tex(cell.text) + (cell.marks ? `\\textsuperscript{${tex(cell.marks)}}` : "") + (cell.small && head !== "head" ? ` {\\scriptsize [${tex(cell.small)}]}` : "")).join(" & ") + " \\\\";
    return ["% needs booktabs and amssymb", `\\begin{tabular}{${numeric.map((is) => is ? "r" : "l").join("")}}`,
      "\\toprule", line(rows[0], "head"), "\\midrule", ...rows.slice(1).map(line), "\\bottomrule", "\\end{tabular}", ""].join("\n");
  }
  for (const table of document.querySelectorAll("table.export")) {
    const name = table.dataset.name;
    const tools = el("p", "tools");
    tools.append(button("CSV", () => save(`${name}.csv`, "text/csv", csv(table)), `Save "${name}" as CSV`),
      button("LaTeX", () => save(`${name}.tex`, "text/x-tex", latex(table)), `Save "${name}" as LaTeX`));
    (table.closest(".scroll") ?? table).after(tools);
  }

  // ---- charts as SVG and PNG, in the colours of the day: the page's own are not part of the file
  for (const figure of document.querySelectorAll("figure")) {
    const tools = el("p", "tools");
    const shown = () => [...figure.querySelectorAll("svg")].find((svg) => svg.getBoundingClientRect().width);
    const source = () => new XMLSerializer().serializeToString(shown());
    const name = () => shown().id.replace(/-wide|-narrow/, "");
    function png() {
      const [, , width, height] = shown().getAttribute("viewBox").split(" ").map(Number);
      const image = new Image();
      image.onload = () => {
        const canvas = el("canvas");
        [canvas.width, canvas.height] = [2 * width, 2 * height];
        const paint = canvas.getContext("2d");
        paint.fillStyle = "#fff";
        paint.fillRect(0, 0, canvas.width, canvas.height);
        paint.drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob((blob) => save(`${name()}.png`, "image/png", blob));
      };
      image.src = `data:image/svg+xml,${encodeURIComponent(source().replace("<svg ", `<svg width="${width}" height="${height}" `))}`;
    }
    tools.append(button("SVG", () => save(`${name()}.svg`, "image/svg+xml", source()), "Save this chart as SVG"),
      button("PNG", png, "Save this chart as PNG"));
    figure.after(tools);
  }

  // ---- the name of a mark: the mouse, a finger or the keyboard points at it
  for (const mark of document.querySelectorAll("#picture svg g[aria-label]")) {
    for (const kind of ["pointerenter", "focus", "click"]) {
      mark.addEventListener(kind, () => { byId("pointed").textContent = mark.getAttribute("aria-label"); });
    }
  }

  // ---- texts to copy
  async function copy(code, pressed) {
    try {
      await navigator.clipboard.writeText(code.textContent);
      pressed.textContent = "Copied";
    } catch { // no permission: the text is marked, for the keyboard
      getSelection().selectAllChildren(code);
      pressed.textContent = "Marked";
    }
    setTimeout(() => { pressed.textContent = "Copy"; }, 2000);
  }
  for (const box of document.querySelectorAll(".copy")) {
    const pressed = button("Copy", () => copy(box.querySelector("code"), pressed), "Copy this text");
    pressed.setAttribute("aria-live", "polite");
    box.append(pressed);
  }
  addEventListener("hashchange", show);
  // A link into something folded opens it.
  function show() {
    const goal = location.hash.startsWith("#?") ? null : byId(location.hash.slice(1));
    for (let box = goal?.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
  }
  show();
  return { byId, el, chosen, remember };
})();
