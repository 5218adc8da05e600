// What the visitor does on the page of the GPU. All numbers come from the record in the page.
// SPDX-License-Identifier: Apache-2.0
"use strict";
const Gpu = (() => {
  const $ = (id) => document.getElementById(id);
  const record = JSON.parse($("record").textContent);
  const kPlay = 900;
  const kChanges = {
    naive: "One thread per element, neighbouring threads in neighbouring rows: each lane reads another row of a, hence another sector.",
    coalesced: "Only who computes what differs: neighbouring lanes take neighbouring columns, and one element of a serves them all.",
    tiled: "A block keeps tiles in shared memory and asks global memory 32 times less often. Barriers appear.",
    "tiled-transposed": "The tile of b lies transposed: the lanes read a column of it, 32 words of one bank.",
    "tiled-padded": "One unused number per row moves each row to the next bank, and the column takes one pass again.",
    "register-tiled": "A thread owns 4 × 4 elements: 16 multiplications for 8 numbers read from shared memory, and half of the warps fit.",
    implicit: "The convolution as a product whose patches are read where they lie in the image; at its rim lanes read padding, that is nothing.",
  };
  let kernel, site, visits = [], visit = 0, timer = 0;

  const escape = (text) => text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);
  const lines = (file) => (record.sources[file] || "").split("\n");
  const short = (file) => file.split("/").at(-1);
  const per = (a, b) => (b === 0 ? "–" : (a / b).toFixed(2));
  const options = (select, texts) => select.replaceChildren(...texts.map((text, i) => new Option(text, i)));

  // Lines of a source around that one, and one more that stands out when it is among them.
  function excerpt(element, file, line, { name, around, other }) {
    const all = lines(file), from = Math.max(1, line - around), to = Math.min(all.length, line + around);
    const style = (number) => (number === line ? ` class="${name}"` : number === other ? " class=\"other\"" : "");
    element.innerHTML = Array.from({ length: to - from + 1 }, (_, i) => from + i).map((number) =>
      `<span${style(number)}>${String(number).padStart(4)}  ${escape(all[number - 1])}</span>`).join("");
  }

  // --- the ladder ---------------------------------------------------------------------------

  const problem = () => record.problems[$("problem").value];
  function cells(of) {
    const { global, shared } = of;
    return [global.requests.toLocaleString("en"), per(global.sectors, global.requests),
      (100 * global.distinct_bytes / (32 * global.sectors)).toFixed(1), shared.requests.toLocaleString("en"),
      per(shared.wavefronts, shared.requests), per(global.lanes + shared.lanes, global.requests + shared.requests),
      of.barriers, of.block_threads, of.shared_bytes,
      of.occupancy ? `${of.occupancy.warps}/${of.occupancy.max_warps}` : "–"];
  }
  function drawLadder() {
    $("ladder").tBodies[0].replaceChildren(...problem().kernels.map((of, i) => {
      const row = document.createElement("tr");
      row.dataset.kernel = of.name;
      row.dataset.counters = JSON.stringify({ global: of.global, shared: of.shared, barriers: of.barriers });
      row.innerHTML = `<td><button type="button">${of.name}</button></td>${cells(of).map((text) => `<td class="n">${text}</td>`).join("")}`;
      row.addEventListener("click", () => chooseKernel(i));
      return row;
    }));
    chooseKernel(0);
  }
  function chooseKernel(i) {
    kernel = problem().kernels[i];
    [...$("ladder").tBodies[0].rows].forEach((row, k) => {
      row.classList.toggle("chosen", k === i);
      row.querySelector("button").setAttribute("aria-pressed", k === i);
    });
    $("change").textContent = kChanges[kernel.name] || "";
    options($("site"), kernel.sites.map(({ file, line, space, access, requests }) =>
      `${short(file)}:${line} · ${space} ${access} · ${requests.toLocaleString("en")} requests`));
    // The dearest line is what a step is about.
    const cost = ({ sectors, wavefronts }) => sectors + wavefronts;
    $("site").value = kernel.sites.reduce((best, one, k) => (cost(one) > cost(kernel.sites[best]) ? k : best), 0);
    chooseSite();
  }

  // --- one request --------------------------------------------------------------------------

  function chooseSite() {
    pause();
    site = kernel.sites[$("site").value];
    excerpt($("source"), site.file, site.line, { name: "here", around: 4 });
    const warps = [...new Set(site.visits.map(({ block, warp }) => `block (${block.join(", ")}), warp ${warp}`))];
    $("warp").replaceChildren(...warps.map((text) => new Option(text, text)));
    chooseWarp();
  }
  function chooseWarp() {
    visits = site.visits.filter(({ block, warp }) => $("warp").value === `block (${block.join(", ")}), warp ${warp}`);
    go(0);
  }
  function go(i) {
    visit = Math.max(0, Math.min(i, visits.length - 1));
    $("visit").textContent = visits.length === 0 ? "Only warps that were not kept come here." : `request ${visit + 1} of the ${visits.length} kept`;
    if (visits.length === 0) $("request").replaceChildren();
    else Access.draw($("request"), visits[visit], site.space, site.access);
  }
  function pause() {
    clearInterval(timer);
    timer = 0;
    $("play").textContent = "▶ Play";
  }
  function toggle() {
    if (timer) return pause();
    if (visit >= visits.length - 1) go(0);
    $("play").textContent = "❚❚ Pause";
    timer = setInterval(() => (visit >= visits.length - 1 ? pause() : go(visit + 1)), kPlay);
  }

  // --- strides ------------------------------------------------------------------------------

  function drawPattern() {
    const [space, floats, first, stride] = [$("space").value, Number($("floats").value), Number($("from").value), Number($("stride").value)];
    const family = record.patterns.filter((one) => one.space === space && one.floats === floats && one.first === first);
    const most = Math.max(...family.map(({ cost }) => cost));
    $("stride-is").textContent = floats === 1 ? stride : `${stride} × ${floats}`;
    $("bars").replaceChildren(...family.map((one) => {
      const bar = document.createElement("button");
      bar.type = "button";
      bar.style.height = `${100 * one.cost / most}%`;
      bar.title = `stride ${one.stride}: ${one.cost} ${space === "global" ? "sectors" : "passes"}`;
      bar.setAttribute("aria-label", bar.title);
      bar.classList.toggle("chosen", one.stride === stride);
      bar.addEventListener("click", () => { $("stride").value = one.stride; drawPattern(); });
      return bar;
    }));
    Access.draw($("pattern"), family.find((one) => one.stride === stride), space, "read");
  }

  // --- mistakes -----------------------------------------------------------------------------

  function drawMistake() {
    const { name, kind, file, line, block, thread, reason } = record.mistakes[$("mistake").value];
    $("fault").innerHTML = `<b>${escape(kind)}</b> at ${short(file)}:${line}, block (${block.join(", ")}), thread (${thread.join(", ")}): ${escape(reason)}`;
    const other = Number(/at line (\d+)/.exec(reason)?.[1]);
    excerpt($("fault-source"), file, line, { name: "fault", around: 8, other });
    $("fault-command").textContent = `triptych check --kernel ${name}`;
  }

  function listen() {
    $("problem").addEventListener("input", drawLadder);
    $("site").addEventListener("input", chooseSite);
    $("warp").addEventListener("input", () => { pause(); chooseWarp(); });
    $("back").addEventListener("click", () => { pause(); go(visit - 1); });
    $("forth").addEventListener("click", () => { pause(); go(visit + 1); });
    $("play").addEventListener("click", toggle);
    $("choice").addEventListener("input", drawPattern);
    $("mistake").addEventListener("input", drawMistake);
    document.addEventListener("keydown", (event) => {
      if (event.target.closest("input, select, button") || event.ctrlKey || event.metaKey || event.altKey) return;
      const keys = { " ": toggle, ArrowLeft: () => { pause(); go(visit - 1); }, ArrowRight: () => { pause(); go(visit + 1); } };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
  }

  options($("problem"), record.problems.map(({ name }) => name));
  options($("mistake"), record.mistakes.map(({ name }) => name.replace("lesson-", "").replaceAll("-", " ")));
  listen();
  drawLadder();
  drawPattern();
  drawMistake();
  document.body.dataset.ready = "1";
  return { record };
})();
