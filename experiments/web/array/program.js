// The program beside the array: an editor that marks the instructions of the shown cycle.
// SPDX-License-Identifier: Apache-2.0
"use strict";
const Program = (() => {
  const $ = (id) => document.getElementById(id);
  const kCheckDelay = 300;  // milliseconds after the last key
  // `own`: a text of the visitor, not the product's. `edited`: it has not run yet.
  const state = { own: false, edited: false, lines: [] };
  let wrong = 0, timer = 0;

  const text = () => $("code-text").value;
  const count = (value) => value.split("\n").length;

  function scroll() {
    const { scrollTop } = $("code-text");
    for (const id of ["code-numbers", "code-marks"]) $(id).style.transform = `translateY(${-scrollTop}px)`;
  }
  function number() {
    $("code-numbers").textContent = Array.from({ length: count(text()) }, (_, i) => i + 1).join("\n");
    scroll();
  }
  function draw(marks) {
    $("code-marks").replaceChildren(...marks.map(([line, kind]) => {
      const mark = document.createElement("div");
      mark.className = `mark ${kind}`;
      mark.style.setProperty("--line", line - 1);
      mark.dataset.line = line;
      return mark;
    }));
  }
  // The editor scrolls within itself, unless the visitor writes in it.
  function reveal(line) {
    const area = $("code-text"), tall = area.scrollHeight / count(text()), y = (line - 1) * tall;
    if (document.activeElement === area || (y >= area.scrollTop && y + 2 * tall <= area.scrollTop + area.clientHeight)) return;
    area.scrollTop = y - area.clientHeight / 3;
  }

  function describe() {
    $("code").toggleAttribute("data-own", state.own);
    $("code").toggleAttribute("data-edited", state.edited);
    $("code-back").hidden = !state.own;
    $("code-note").textContent = state.edited ? "Changed: run it to see its cycles."
      : `${state.own ? "Your program." : "The product's program. Edit it, or write your own."} Filled lines run in this cycle. A dashed line is the next one.`;
  }
  function show(program, own) {
    Object.assign(state, { own, edited: false });
    $("code-text").value = program;
    $("code-text").scrollTop = $("code-text").scrollLeft = 0;
    number();
    accept();
  }

  // Names the line of each instruction that the message names by its number.
  const placed = (message) => message.replace(/^\[\w+\] /, "").replace(/instruction (\d+) \(/g,
    (named, index) => (index in state.lines ? `${named}line ${state.lines[index]}: ` : named));
  function reject(error) {
    const message = placed(error.message), line = /line (\d+)/.exec(message);
    wrong = line ? Number(line[1]) : 0;
    $("code-problem").textContent = `${message}.`;
    $("code-problem").hidden = false;
    $("code-text").setAttribute("aria-invalid", "true");
    draw(wrong ? [[wrong, "wrong"]] : []);
    if (wrong) reveal(wrong);
  }
  function accept() {
    wrong = 0;
    $("code-problem").hidden = true;
    $("code-text").removeAttribute("aria-invalid");
    draw([]);
    describe();
  }
  // Reads the text without running it. Whether it is a program.
  function check() {
    clearTimeout(timer);
    state.lines = [];
    try {
      state.lines = Module.assemble(text()).lines;
    } catch (error) {
      reject(error);
      return false;
    }
    accept();
    return true;
  }
  function edit() {
    Object.assign(state, { own: true, edited: true });
    number();
    describe();
    draw([]);
    clearTimeout(timer);
    timer = setTimeout(check, kCheckDelay);
  }

  // The instructions that a unit works on in a cycle.
  const running = (program, cycle) => program.filter(({ start, end, unit }) =>
    unit !== "halt" && start <= cycle && cycle < Math.max(end, start + 1));
  function mark(program, cycle) {
    if (state.edited || wrong) return;
    const now = running(program, cycle).map(({ line, unit }) => [line, unit]);
    if (now.length === 0) {
      const later = program.filter(({ start }) => start > cycle);
      if (later.length > 0) now.push([later.reduce((a, b) => (b.start < a.start ? b : a)).line, "next"]);
    }
    draw(now);
    if (now.length > 0) reveal(now[0][0]);
  }
  // The next cycle, in a direction, in which an instruction starts or ends.
  function event(program, cycle, forth) {
    const cycles = program.flatMap(({ start, end }) => [start, end]).filter((at) => (forth ? at > cycle : at < cycle));
    return forth ? Math.min(...cycles) : Math.max(0, ...cycles);
  }

  function listen({ run, back }) {
    $("code-text").addEventListener("input", edit);
    $("code-text").addEventListener("scroll", scroll);
    $("code-text").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(); }
    });
    $("code-run").addEventListener("click", run);
    $("code-back").addEventListener("click", () => { state.own = state.edited = false; back(); });
  }
  return { state, text, show, check, accept, reject, running, mark, event, listen };
})();
