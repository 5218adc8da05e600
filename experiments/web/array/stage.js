// The array as it stands in one cycle: a cell per PE, what is about to enter on the left and above,
// what leaves below.
// SPDX-License-Identifier: Apache-2.0
"use strict";
const Stage = (() => {
  const kEnable = 1 << 16;
  const kFields = ["activation", "weight", "waiting", "passing", "sum"];
  const kAhead = 3;  // cycles that are shown before they enter
  const { float, fromBf16, short, hex } = Numbers;
  let grid, cells = [], rows = 0, columns = 0, heads = [], lefts = [], feet = [];

  const make = (parent, name, where) => {
    const element = document.createElement("div");
    element.className = name;
    if (where) [element.style.gridRow, element.style.gridColumn] = where;
    parent.append(element);
    return element;
  };
  const span = (parent, name) => {
    const element = document.createElement("span");
    element.className = name;
    parent.append(element);
    return element;
  };

  function build(element, answer, choose) {
    grid = element;
    [rows, columns] = [answer.rows, answer.columns];
    grid.replaceChildren();
    grid.style.setProperty("--rows", rows);
    grid.style.setProperty("--columns", columns);
    grid.dataset.size = Math.max(rows, columns);
    heads = Array.from({ length: columns }, (_, c) => {
      const head = make(grid, "head", [1, c + 2]);
      return { ahead: Array.from({ length: 2 }, () => span(head, "ahead")), top: span(head, "top") };
    });
    lefts = Array.from({ length: rows }, (_, r) => {
      const left = make(grid, "left", [r + 2, 1]);
      return Array.from({ length: kAhead }, () => span(left, "ahead"));
    });
    feet = Array.from({ length: columns }, (_, c) => span(make(grid, "foot", [rows + 2, c + 2]), "out"));
    cells = [];
    for (let r = 0; r < rows; ++r)
      for (let c = 0; c < columns; ++c) {
        const cell = make(grid, "pe", [r + 2, c + 2]);
        cell.dataset.row = r;
        cell.dataset.column = c;
        cell.title = `PE (${r}, ${c})`;
        cell.addEventListener("click", () => choose(r, c));
        cells.push({ cell, a: span(cell, "a"), w: span(cell, "w"), m: span(cell, "m"), s: span(cell, "s") });
      }
  }

  const weightText = (bits) => (bits & kEnable ? short(fromBf16(bits), 2) : "");

  // What of two recordings should be equal and is not; `known` says which registers mean something.
  function differences(answer, t, r, c) {
    if (!answer.rtl) return [];
    const twin = answer.twin.pe(t, r, c), rtl = answer.rtl.pe(t, r, c);
    return kFields.filter((name, i) => {
      if (!(twin.known >> i & 1)) return false;
      const off = i >= 1 && i <= 3 && !(twin[name] & kEnable) && !(rtl[name] & kEnable);
      return !off && twin[name] !== rtl[name];
    });
  }

  function drawCell(answer, shown, t, index, chosen) {
    const r = Math.floor(index / columns), c = index % columns;
    const { cell, a, w, m, s } = cells[index];
    const pe = shown.pe(t, r, c), known = answer.twin.pe(t, r, c).known;
    for (const name of kFields) cell.dataset[name] = hex(pe[name], 8);
    cell.dataset.known = known;
    a.textContent = known & 1 ? short(fromBf16(pe.activation), 2) : "";
    w.textContent = weightText(pe.weight);
    const carries = answer.moved(t) && pe.passing & kEnable;
    m.textContent = carries ? weightText(pe.passing) : "";
    s.textContent = known & 16 ? short(float(pe.sum), 3) : "";
    const computes = known & 1 && known & 2 && pe.weight & kEnable;
    cell.classList.toggle("on", Boolean(computes));
    cell.classList.toggle("passes", Boolean(known & 1 && !computes));
    cell.classList.toggle("carries", Boolean(carries));
    cell.classList.toggle("chosen", chosen);
    cell.classList.toggle("wrong", differences(answer, t, r, c).length > 0);
  }

  function draw(answer, shown, t, chosen) {
    for (let i = 0; i < cells.length; ++i)
      drawCell(answer, shown, t, i, chosen.row * columns + chosen.column === i);
    const later = (ahead) => Math.min(t + ahead, answer.recorded - 1);
    lefts.forEach((spans, r) => spans.forEach((element, i) => {
      const pe = answer.twin.pe(later(kAhead - i), r, 0);
      element.textContent = pe.known & 1 && later(kAhead - i) !== t ? short(fromBf16(pe.activation), 2) : "·";
    }));
    heads.forEach(({ ahead, top }, c) => {
      ahead.forEach((element, i) => {
        const then = later(2 - i), pe = shown.pe(then, 0, c);
        element.textContent = answer.moved(then) && then !== t ? weightText(pe.passing) || "–" : "·";
      });
      const { value, known } = answer.twin.top(t, c);
      top.textContent = known ? `${short(float(value), 3)} ↓` : "";
      top.classList.toggle("fed", Boolean(known && value !== 0));
    });
    feet.forEach((element, c) => {
      const pe = shown.pe(t, rows - 1, c);
      element.textContent = answer.twin.pe(t, rows - 1, c).known & 16 ? `↓ ${short(float(pe.sum), 3)}` : "";
    });
  }

  return { build, draw, differences, kFields, kEnable };
})();
