// The page of a user's kernel. All numbers come from the record in the page.
// SPDX-License-Identifier: Apache-2.0
"use strict";
const Kernel = (() => {
  const $ = (id) => document.getElementById(id);
  const record = JSON.parse($("record").textContent);
  const kLanes = 32, kAround = 3;
  const escape = (text) => text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);
  const short = (file) => file.split("/").at(-1);
  const per = (a, b) => (b === 0 ? "–" : (a / b).toFixed(2));
  const number = (n) => n.toLocaleString("en");
  const hue = (i) => (i * 67 + 210) % 360;
  const place = ({ file, line }) => `${file}:${line}`;

  // --- counters -----------------------------------------------------------------------------

  const sum = (of, field) => Object.values(of).reduce((all, each) => all + (each[field] || 0), 0);
  function time(seconds) {
    const [unit, factor] = [["s", 1], ["ms", 1e3], ["µs", 1e6], ["ns", 1e9]].find(([, f]) => seconds * f >= 1) || ["ns", 1e9];
    return `${(seconds * factor).toPrecision(3)} ${unit}`;
  }
  const kRows = [
    ["global requests", ({ global }) => number(sum(global, "requests"))],
    ["sectors / request", ({ global }) => per(sum(global, "sectors"), sum(global, "requests"))],
    ["useful %", ({ global }) => per(100 * sum(global, "distinct_bytes"), 32 * sum(global, "sectors"))],
    ["sectors requested", ({ global }) => number(sum(global, "sectors"))],
    ["from or to L2", ({ global }) => number(sum(global, "l2_sectors"))],
    ["from or to memory", ({ global }) => number(sum(global, "memory_sectors"))],
    ["shared requests", ({ shared }) => number(sum(shared, "requests"))],
    ["wavefronts / request", ({ shared }) => per(sum(shared, "wavefronts"), sum(shared, "requests"))],
    ["constant passes / request", ({ constant }) => per(sum(constant, "wavefronts"), sum(constant, "requests"))],
    ["lanes on one address / atomic request", ({ global, shared }) =>
      per(global.atomic.contention + shared.atomic.contention, global.atomic.requests + shared.atomic.requests)],
    ["lanes / request", ({ global, shared }) =>
      per(sum(global, "lanes") + sum(shared, "lanes"), sum(global, "requests") + sum(shared, "requests"))],
    ["divergent branches of warps", ({ branches }) => number(branches.reduce((all, { divergent_warps: n }) => all + n, 0))],
    ["barriers", ({ barriers }) => number(barriers)],
    ["floating-point operations", ({ bounds }) => number(bounds.operations)],
    ["operations / byte of memory", ({ bounds }) => per(bounds.operations, bounds.memory_bytes)],
    ["least time (modelled)", ({ bounds }) => (bounds.units.length === 0 ? "–"
      : `${time(bounds.units[0].time.value)}: ${bounds.units[0].unit}`)],
  ];
  function drawCosts() {
    const versions = record.versions.filter(({ counters }) => counters);
    $("costs").tHead.innerHTML = `<tr><th scope="col"></th>${versions.map(({ name }) => `<th scope="col" class="n">${escape(name)}</th>`).join("")}</tr>`;
    $("costs").tBodies[0].innerHTML = kRows.map(([name, of]) => `<tr><th scope="row">${name}</th>${
      versions.map(({ counters }) => `<td class="n">${of(counters)}</td>`).join("")}</tr>`).join("");
    const rows = versions.flatMap(({ name, counters }) => counters.branches.filter(({ divergent_warps: n }) => n > 0).map((branch) => ({ name, ...branch })));
    $("no-branches").hidden = rows.length > 0;
    $("branch-table").hidden = rows.length === 0;
    $("branches").tBodies[0].innerHTML = rows.map(({ name, file, line, warps, divergent_warps: parted }) =>
      `<tr><td>${escape(name)}</td><td>${short(file)}:${line}</td><td class="n">${number(warps)}</td><td class="n">${number(parted)}</td><td>${
        escape((lines(file)[line - 1] || "").trim())}</td></tr>`).join("");
  }

  // --- the steps of a warp ------------------------------------------------------------------

  const lines = (file) => (record.sources[file] || "").split("\n");

  class Walk {
    constructor(version, index) {
      this.version = version;
      this.element = $("walk").content.firstElementChild.cloneNode(true);
      this.element.dataset.version = index;
      this.find("h3").textContent = version.name;
      if (version.finding) {
        this.find(".finding").hidden = false;
        this.find(".finding").textContent = version.finding;
      }
      this.find(".warp").replaceChildren(...version.warps.map(({ block, warp }, i) => new Option(`block (${block.join(", ")}), warp ${warp}`, i)));
      this.find(".warp").addEventListener("input", () => this.choose());
      this.find(".step").addEventListener("input", (event) => this.go(Number(event.target.value)));
      this.find(".back").addEventListener("click", () => this.go(this.step - 1));
      this.find(".forth").addEventListener("click", () => this.go(this.step + 1));
      this.find(".request").addEventListener("click", () => this.goToRequest());
      this.find(".lanes").addEventListener("click", (event) => this.go(Math.floor(event.offsetX / event.target.clientWidth * this.steps.length)));
      $("walks").append(this.element);
      this.choose();
    }
    find(selector) { return this.element.querySelector(selector); }
    choose() {
      const warp = this.version.warps[this.find(".warp").value];
      this.steps = warp ? warp.steps : [];
      this.more = warp ? warp.more : 0;
      this.places = [...new Set(this.steps.map(place))].sort((a, b) => Number(a.split(":").at(-1)) - Number(b.split(":").at(-1)));
      this.find(".step").max = Math.max(0, this.steps.length - 1);
      this.go(0);
    }
    colour(step) { return hue(this.places.indexOf(place(step))); }
    go(i) {
      this.step = Math.max(0, Math.min(i, this.steps.length - 1));
      this.find(".step").value = this.step;
      this.draw();
    }
    goToRequest() {
      const next = this.steps.findIndex((step, i) => i > this.step && step.at);
      if (next >= 0) this.go(next);
    }
    draw() {
      const step = this.steps[this.step];
      if (!step) {
        this.find(".at").textContent = "No step of this warp was kept.";
        return;
      }
      const active = Array.from({ length: kLanes }, (_, lane) => (step.mask >>> lane) & 1).reduce((a, b) => a + b, 0);
      this.find(".at").textContent = `step ${this.step + 1} of ${this.steps.length}${
        this.more > 0 ? ` (${number(this.more)} more not kept)` : ""}: line ${step.line}, ${active} of ${kLanes} lanes`;
      this.element.dataset.line = step.line;
      this.element.dataset.active = active;
      this.drawLanes();
      this.drawSource(step);
      if (step.at) Access.draw(this.find(".access"), step, step.space, step.access);
      else this.find(".access").innerHTML = `<p class="says">${active} ${active === 1 ? "lane runs" : "lanes run"} the code that begins in line ${step.line}.</p>`;
    }
    drawLanes() {
      const canvas = this.find(".lanes"), style = getComputedStyle(this.element), scale = devicePixelRatio || 1;
      canvas.width = Math.max(1, canvas.clientWidth * scale);
      canvas.height = 128 * scale;
      const context = canvas.getContext("2d");
      const width = canvas.width / this.steps.length, height = canvas.height / kLanes;
      this.steps.forEach((step, i) => {
        context.fillStyle = `hsl(${this.colour(step)} 55% 58%)`;
        for (let lane = 0; lane < kLanes; ++lane)
          if ((step.mask >>> lane) & 1) context.fillRect(i * width, lane * height, Math.max(1, width - (width > 4 ? 1 : 0)), Math.max(1, height - 0.5));
      });
      context.strokeStyle = style.color;
      context.lineWidth = 2 * scale;
      context.strokeRect(this.step * width, 0, Math.max(2, width), canvas.height);
    }
    drawSource(step) {
      const own = this.steps.filter(({ file }) => file === step.file).map(({ line }) => line);
      const all = lines(step.file), from = Math.max(1, Math.min(...own) - kAround), to = Math.min(all.length, Math.max(...own) + kAround);
      const source = this.find(".source");
      source.innerHTML = Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i).map((line) => {
        const known = this.places.indexOf(`${step.file}:${line}`);
        return `<span${line === step.line ? " class=\"here\"" : ""}><i style="background:${known < 0 ? "none" : `hsl(${hue(known)} 55% 58%)`}"></i>${
          String(line).padStart(4)}  ${escape(all[line - 1])}</span>`;
      }).join("");
      const here = source.querySelector(".here");
      if (here) source.scrollTop = here.offsetTop - source.clientHeight / 2;
    }
  }

  $("subtitle").textContent = `${record.file} ran on an emulated ${record.gpu} when this page was written. The page replays that recording.`;
  drawCosts();
  const walks = record.versions.map((version, i) => new Walk(version, i));
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, select, button, pre") || event.ctrlKey || event.metaKey || event.altKey) return;
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    walks.forEach((walk) => walk.go(walk.step + by));
  });
  addEventListener("resize", () => walks.forEach((walk) => walk.draw()));
  document.body.dataset.ready = "1";
  return { record, walks };
})();
