// What the visitor chooses becomes a request, and the answer becomes the page.
// SPDX-License-Identifier: Apache-2.0
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const { fromBf16, toBf16, float, short, parts, hex, count } = Numbers;
  // Cycles per second of the slider's places.
  const kSpeeds = [1, 2, 4, 8, 16, 32, 60];
  const kCauses = { drain: "nothing to compute: fill, drain, stores", activations: "waits for activations",
    output: "waits for the store unit", dram: "waits for weights from memory", weights: "weights move into the PEs",
    accumulator: "waits for its own sums", "in-flight": "too many matmuls in flight" };
  let machines = [], layers = [], answer = null, request = null, cycle = 0, timer = 0, agreed = null;
  const chosen = { row: 0, column: 0 };

  // --- the request --------------------------------------------------------------------------

  // The same small numbers at every visit.
  function noise(seed) {
    let state = seed >>> 0 || 1;
    return () => {
      state ^= state << 13; state ^= state >>> 17; state ^= state << 5;
      return (state >>> 0) / 4294967296;
    };
  }
  const rounded = (value) => fromBf16(toBf16(value));
  function numbers(kind, rows, columns, seed) {
    const next = noise(seed);
    return Array.from({ length: rows * columns }, (_, i) => {
      if (kind === "identity" && seed === 2) return Math.floor(i / columns) === i % columns ? 1 : 0;
      return kind === "random" ? rounded(2 * next() - 1) : Math.floor(9 * next()) - 4;
    });
  }
  function matrix(text, name) {
    if (!text.trim()) throw new Error(`${name} is empty: write its rows, numbers with spaces between them`);
    const words = text.trim().split(/\n/).map((line) => line.trim().split(/[\s,;]+/)), rows = words.map((line) => line.map(Number));
    if (rows.some((row) => row.length !== rows[0].length)) throw new Error(`${name}: its rows are not equally long`);
    rows.forEach((row, r) => row.forEach((value, c) => {
      if (Number.isNaN(value)) throw new Error(`${name}, row ${r + 1}: "${words[r][c]}" is no number`);
    }));
    if (rows.length > 64 || rows[0].length > 64) throw new Error(`${name}: at most 64 rows and 64 columns fit here`);
    return { rows: rows.length, columns: rows[0].length, values: rows.flat().map(rounded) };
  }
  const write = (values, columns) => Array.from({ length: values.length / columns },
    (_, r) => values.slice(r * columns, (r + 1) * columns).join(" ")).join("\n");

  function product() {
    const kind = $("numbers").value;
    const [m, k, n] = ["m", "k", "n"].map((id) => Number($(id).value));
    if (kind !== "own") {
      const x = numbers(kind, m, k, 1), w = numbers(kind, k, n, 2);
      return { op: "matmul", m, k, n, x, w };
    }
    const x = matrix($("own-x").value, "X"), w = matrix($("own-w").value, "W");
    if (x.columns !== w.rows) throw new Error(`X has ${x.columns} columns and W ${w.rows} rows; the numbers must be equal`);
    return { op: "matmul", m: x.rows, k: x.columns, n: w.columns, x: x.values, w: w.values };
  }
  function convolution() {
    const [batch, side, channels, filters, window] =
      ["batch", "side", "channels", "filters", "window"].map((id) => Number($(id).value));
    const kind = $("numbers").value === "random" ? "random" : "small";
    return { op: "conv", batch, height: side, width: side, channels, filters, window,
      x: numbers(kind, batch * channels, side * side, 1), w: numbers(kind, filters, channels * window * window, 2) };
  }
  function requested() {
    const known = machines[$("machine").selectedIndex], latency = Number($("latency").value);
    const machine = { ...known.machine, pe_latency: latency, weight_scheme: $("scheme").value, dram: $("dram").value, dram_bytes: 1 << 22 };
    return { machine, rtl: known.rtl && latency === known.machine.pe_latency, ...($("op").value === "conv" ? convolution() : product()),
      ...(Program.state.own ? { program: Program.text() } : {}) };
  }

  // --- the answer ---------------------------------------------------------------------------

  const shown = () => (answer.rtl && $("source").value === "rtl" ? answer.rtl : answer.twin);
  const row = (cells, heads = 1) => {
    const tr = document.createElement("tr");
    cells.forEach((text, i) => {
      const cell = document.createElement(i < heads ? "th" : "td");
      if (i < heads) cell.scope = "row"; else if (/^[\d−.,e–]+$/.test(text)) cell.className = "n";
      cell.textContent = text;
      tr.append(cell);
    });
    return tr;
  };

  function drawCounters() {
    const rtl = answer.rtl_counters;
    $("counters").tBodies[0].replaceChildren(...Object.entries(answer.counters).map(([name, value]) => {
      const tr = row([name.replaceAll("_", " "), count(value), rtl ? count(rtl[name]) : "–"]);
      tr.dataset.counter = name;
      tr.dataset.twin = value;
      if (rtl) tr.dataset.rtl = rtl[name];
      tr.classList.toggle("wrong", Boolean(rtl) && rtl[name] !== value);
      return tr;
    }));
  }

  function drawLost() {
    const { counters, rows, columns } = answer, all = counters.cycles;
    const places = all * rows * columns, macs = counters.macs;
    const parts = [["multiplies", macs / places, `${count(macs)} multiply-adds`],
      ["idle", (counters.issue_cycles * rows * columns - macs) / places, "PEs without a weight, or unused slots, while others multiply"]];
    for (const [cause, words] of Object.entries(kCauses))
      parts.push([cause, counters[`stall_${cause.replace("-", "_")}_cycles`] / all, words]);
    const bar = document.createElement("div");
    bar.className = "share-bar";
    const list = document.createElement("ul");
    for (const [name, share, words] of parts) {
      if (!(share > 0)) continue;
      const piece = document.createElement("span"), line = document.createElement("li");
      piece.className = line.className = `share ${name}`;
      piece.style.width = `${100 * share}%`;
      piece.title = `${words}: ${(100 * share).toFixed(1)} %`;
      line.textContent = `${(100 * share).toFixed(1)} % ${name === "multiplies" || name === "idle" ? `${name}: ${words}` : words}`;
      bar.append(piece);
      list.append(line);
    }
    $("lost").replaceChildren(bar, list);
    const pieces = answer.program.filter(({ text }) => text.startsWith("matmul")).length;
    const cut = pieces > 1 ? ` It is split into ${pieces} matmuls that fit the array and its buffers, padded with zeros.` : "";
    $("use").textContent = `${count(all)} cycles on ${rows} × ${columns} PEs; ${(100 * macs / places).toFixed(1)} % of them multiply.${
      answer.recorded <= all ? ` The first ${count(answer.recorded)} cycles are shown above.` : ""}${cut}`;
  }

  // Outputs of a program, a row of the last dimension per line.
  function drawOutputs() {
    const { outputs, unexpected, as_product: same } = answer;
    $("expected").hidden = false;
    $("expected").classList.toggle("wrong", unexpected !== "");
    $("expected").textContent = unexpected ? `Not as the program's text expects: ${unexpected}.`
      : /^\s*\.expect/m.test(request.program) ? "As the program's text expects."
      : outputs.length > 0 ? "The program's text expects nothing."
      : `The program ran on the memory of the product, and left it ${same ? "as the product's own program does" : "different from that of the product's own program"}.`;
    $("result").caption.textContent = outputs.map(({ name, type, shape }) => `${name}: ${type}, ${shape.join(" × ")}`).join("; ");
    $("result").tBodies[0].replaceChildren(...outputs.flatMap(({ name, shape, values }) => {
      const wide = shape.at(-1), tall = Math.min(Math.ceil(values.length / wide), 64);
      return Array.from({ length: tall }, (_, r) =>
        row([tall > 1 ? `${name}, row ${r}` : name, ...values.slice(r * wide, (r + 1) * wide).map((v) => v.replace("-", "−"))]));
    }));
  }
  function drawResult() {
    if (request.program !== undefined) return drawOutputs();
    $("expected").hidden = true;
    const conv = request.op === "conv";
    const wide = conv ? request.height * request.width : request.n;
    const tall = Math.min(conv ? request.batch * request.filters : request.m, 64);
    $("result").caption.textContent = conv
      ? "Y, a row per image and filter, its pixels in order; binary32, as the accumulators hold it"
      : "Y = X W, binary32, as the accumulators hold it";
    $("result").tBodies[0].replaceChildren(...Array.from({ length: tall }, (_, r) =>
      row([conv ? `${Math.floor(r / request.filters)}, ${r % request.filters}` : `${r}`,
        ...answer.y.slice(r * wide, (r + 1) * wide).map((v) => short(v, 5))])));
  }

  function drawProgram() {
    $("program").tBodies[0].replaceChildren(...answer.program.slice(0, 400).map(({ text, unit, start, end }) => {
      const tr = row([count(start), count(end), unit, text], 0);
      Object.assign(tr.dataset, { start, end });
      return tr;
    }));
    if (request.program === undefined) Program.show(answer.program.map(({ text }) => text).join("\n"), false);
    Program.state.edited = false;
    Program.accept();
  }

  function drawLanes() {
    const names = answer.signals || [], wanted = $("signal").value;
    const usual = ["load_request_o", "weights_request_o", "store_request_o", "instruction_ready_o"];
    const signals = names.filter(({ name }) => usual.includes(name) || name === wanted);
    Lanes.draw($("lanes"), answer, { shown: shown(), chosen, signals, jump: (t) => { pause(); go(t); } });
    Lanes.move($("lanes"), cycle);
  }
  function fillSignals() {
    const before = $("signal").value;
    $("signal").replaceChildren(...["", ...(answer.signals || []).map(({ name }) => name)].map((name) =>
      new Option(name || "choose one", name, false, name === before)));
    $("signal").parentElement.hidden = !answer.rtl;
  }

  // Compares as the cycles are shown, from the first on; what lies before is not compared again.
  function compare(t) {
    if (!answer.rtl) return;
    for (; agreed.upTo <= t; ++agreed.upTo)
      for (let r = 0; r < answer.rows; ++r)
        for (let c = 0; c < answer.columns; ++c) {
          const wrong = Stage.differences(answer, agreed.upTo, r, c);
          agreed.registers += [0, 1, 2, 3, 4].filter((i) => answer.twin.pe(agreed.upTo, r, c).known >> i & 1).length;
          agreed.wrong += wrong.length;
          if (wrong.length > 0 && !agreed.first) agreed.first = `${wrong[0]} of PE (${r}, ${c}) in cycle ${agreed.upTo}`;
        }
  }
  function drawAgreement() {
    const element = $("agreement");
    element.dataset.compared = agreed.registers;
    element.dataset.wrong = agreed.wrong;
    element.dataset.cycles = agreed.upTo;
    element.classList.toggle("different", agreed.wrong > 0 || Boolean(answer.difference));
    if (!answer.rtl) {
      element.textContent = `This page has no RTL of this array: what you see is the twin's, without the weights on their way in. Choose ${
        machines.filter(({ rtl }) => rtl).map(({ machine }) => `${machine.rows} × ${machine.columns}`).join(", ")} with sums of one cycle to see both.`;
      return;
    }
    const whole = answer.difference ? `RTL and twin differ: ${answer.difference}.`
      : "RTL and twin: the same result in memory, the same counters, the same cycles of every instruction.";
    element.textContent = `${whole} ${count(agreed.registers)} registers of PEs compared up to cycle ${agreed.upTo - 1}: ${
      agreed.wrong === 0 ? "no difference" : `${count(agreed.wrong)} differ, first ${agreed.first}`}.`;
  }

  // --- one cycle ----------------------------------------------------------------------------

  function bits(name, value) {
    const { sign, exponent, fraction } = parts(value);
    return `<div><dt>${name}</dt><dd>${short(fromBf16(value), 6)} <code title="sign, exponent, fraction"><b>${sign}</b> ${exponent} <b>${fraction}</b></code></dd></div>`;
  }
  function drawChosen() {
    const { row: r, column: c } = chosen, pe = shown().pe(cycle, r, c);
    const known = answer.twin.pe(cycle, r, c).known;
    // A PE of several stages makes its product before the sum arrives.
    const arrives = Math.min(cycle + (request.machine.pe_latency > 1 ? 1 : 0), answer.recorded - 1);
    const above = r > 0 ? shown().pe(arrives, r - 1, c).sum : shown().top(cycle, c).value;
    const rtl = shown() === answer.rtl;
    const weight = (value, there) => (!there ? "–" : value & Stage.kEnable ? short(fromBf16(value), 6) : "off");
    let does = "waits";
    if (known & 1 && known & 2)
      does = `${short(fromBf16(pe.activation), 6)} × ${short(fromBf16(pe.weight), 6)} + ${short(float(above), 7)}`;
    else if (known & 1) does = "passes on: its weight is off";
    $("chosen").innerHTML = `<h3>PE (${r}, ${c})</h3><p class="does">${does}</p><dl>${
      known & 1 ? bits("activation", pe.activation) : "<div><dt>activation</dt><dd>–</dd></div>"}${
      pe.weight & Stage.kEnable ? bits("weight", pe.weight) : `<div><dt>weight</dt><dd>${weight(pe.weight, rtl)}</dd></div>`}<div><dt>next weight</dt><dd>${
      weight(pe.waiting, rtl)}</dd></div><div><dt>passing by</dt><dd>${weight(pe.passing, answer.moved(cycle))}</dd></div><div><dt>sum that leaves it</dt><dd>${
      known & 16 ? `${short(float(pe.sum), 9)} <code>${hex(pe.sum, 8)}</code>` : "–"}</dd></div></dl>`;
  }
  function drawNow() {
    const running = Program.running(answer.program, cycle);
    const stall = answer.stalls.find(([, from, to]) => from <= cycle && cycle < to);
    const units = ["load", "weights", "compute", "store"].map((unit) => {
      const first = running.find((one) => one.unit === unit);
      return first ? `${unit}: ${first.text.split(" ")[0]}` : "";
    }).filter(Boolean);
    $("now").textContent = `${stall ? `Stall: ${kCauses[stall[0]]}.` : "The address generator issues a slot."} ${units.join(" · ")}`;
  }
  function go(t) {
    cycle = Math.max(0, Math.min(t, answer.recorded - 1));
    compare(cycle);
    Stage.draw(answer, shown(), cycle, chosen);
    $("cycle").textContent = $("scrub").value = cycle;
    drawNow();
    Program.mark(answer.program, cycle);
    drawChosen();
    drawAgreement();
    Lanes.move($("lanes"), cycle);
  }

  function pause() {
    clearInterval(timer);
    timer = 0;
    $("play").textContent = "▶ Play";
  }
  function play() {
    if (cycle >= answer.recorded - 1) go(0);
    $("play").textContent = "❚❚ Pause";
    timer = setInterval(() => (cycle >= answer.recorded - 1 ? pause() : go(cycle + 1)), 1000 / kSpeeds[$("speed").value]);
  }
  const toggle = () => (timer ? pause() : play());

  function choose(r, c) {
    chosen.row = Math.max(0, Math.min(r, answer.rows - 1));
    chosen.column = Math.max(0, Math.min(c, answer.columns - 1));
    go(cycle);
    drawLanes();
  }

  // --- the whole ----------------------------------------------------------------------------

  function fail(error) {
    $("problem").textContent = `${error.message.replace(/^\[\w+\] /, "")}.${answer ? " What is shown below is of the product before." : ""}`;
    document.body.dataset.stale = "true";
    $("problem").hidden = false;
  }
  function run() {
    pause();
    for (const input of document.querySelectorAll("#setup input[type=range]"))
      input.parentElement.querySelector("output").textContent = input.value;
    const own = Program.state.own;
    if (own && !Program.check()) return;
    try {
      request = requested();
    } catch (error) { return fail(error); }
    try {
      answer = Module.run(request);
    } catch (error) { return own ? Program.reject(error) : fail(error); }
    $("problem").hidden = true;
    delete document.body.dataset.stale;
    agreed = { upTo: 0, registers: 0, wrong: 0, first: "" };
    chosen.row = Math.min(chosen.row, answer.rows - 1);
    chosen.column = Math.min(chosen.column, answer.columns - 1);
    $("scrub").max = $("cycles").textContent = answer.recorded - 1;
    $("source").parentElement.hidden = !answer.rtl;
    Stage.build($("grid"), answer, choose);
    fillSignals();
    drawCounters();
    drawLost();
    drawResult();
    drawProgram();
    // A product begins where the array does, a program of the visitor with its first cycle.
    const first = own ? null : answer.program.find(({ text }) => text.startsWith("matmul"));
    go(first ? first.start + 3 : 0);
    drawLanes();
    document.body.dataset.ready = String(Number(document.body.dataset.ready || 0) + 1);
  }

  // One tile that fills the array.
  function fitProduct() {
    const { rows, columns } = machines[$("machine").selectedIndex].machine;
    [$("m").value, $("k").value, $("n").value] = [rows + 2, rows, columns];
  }
  function takeLayer() {
    const layer = layers[$("layer").selectedIndex - 1];
    if (!layer) return;
    for (const name of ["channels", "filters", "window"]) $(name).value = layer[name];
  }
  function arrange() {
    const conv = $("op").value === "conv", own = $("numbers").value === "own" && !conv;
    $("of-matmul").hidden = conv || own;
    $("of-conv").hidden = !conv;
    $("own").hidden = !own;
    if (own && !$("own-x").value) {
      const [m, k, n] = ["m", "k", "n"].map((id) => Number($(id).value));
      $("own-x").value = write(numbers("small", m, k, 1), k);
      $("own-w").value = write(numbers("small", k, n, 2), n);
    }
  }

  function listen() {
    const jumps = { first: () => go(0), back: () => go(cycle - 1), forth: () => go(cycle + 1), last: () => go(Infinity),
      "event-back": () => go(Program.event(answer.program, cycle, false)), "event-forth": () => go(Program.event(answer.program, cycle, true)) };
    for (const [id, jump] of Object.entries(jumps)) $(id).addEventListener("click", () => { pause(); jump(); });
    $("play").addEventListener("click", toggle);
    $("speed").addEventListener("input", () => { if (timer) { pause(); play(); } });
    $("scrub").addEventListener("input", () => { pause(); go(Number($("scrub").value)); });
    $("source").addEventListener("change", () => { go(cycle); drawLanes(); });
    $("signal").addEventListener("change", drawLanes);
    $("setup").addEventListener("submit", (event) => event.preventDefault());
    $("setup").addEventListener("input", (event) => {
      if (event.target.id === "machine") fitProduct();
      else if (event.target.id === "layer") takeLayer();
      else if (["channels", "filters", "window"].includes(event.target.id)) $("layer").selectedIndex = 0;
      arrange();
      run();
    });
    document.addEventListener("keydown", (event) => {
      if (event.target.closest("input, select, textarea, button") || event.ctrlKey || event.metaKey || event.altKey) return;
      const step = event.shiftKey ? 10 : 1, grid = event.target === $("grid");
      const { row: r, column: c } = chosen;
      const keys = { " ": toggle, Home: jumps.first, End: jumps.last };
      if (grid) Object.assign(keys, { ArrowLeft: () => choose(r, c - 1), ArrowRight: () => choose(r, c + 1), ArrowUp: () => choose(r - 1, c), ArrowDown: () => choose(r + 1, c) });
      else Object.assign(keys, { ArrowLeft: () => { pause(); go(cycle - step); }, ArrowRight: () => { pause(); go(cycle + step); } });
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
    Program.listen({ run, back: run });
    addEventListener("resize", () => { if (answer) drawLanes(); });
  }

  async function begin() {
    await Module.load($("wasm").textContent.trim());
    machines = Module.machines().filter(({ machine }) => machine.pe === "bf16" && machine.rows <= 16);
    layers = Module.layers();
    $("machine").replaceChildren(...machines.map(({ machine, rtl }) =>
      new Option(`${machine.rows} × ${machine.columns}${rtl ? "" : ", twin alone"}`, machine.name, false, machine.name === "mmu4")));
    $("layer").replaceChildren(new Option("none", ""), ...layers.map(({ name, channels, filters }) => new Option(`${name}: ${channels} → ${filters}`, name)));
    listen();
    arrange();
    const given = JSON.parse($("given").textContent);
    if (given) Program.show(given.text, true);
    run();
  }
  begin().catch(fail);
})();
