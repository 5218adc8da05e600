// SPDX-License-Identifier: Apache-2.0
(() => {
  const $ = (id) => document.getElementById(id);
  const report = JSON.parse($("report").textContent);
  const kNames = { ring: "ring", direct: "direct: everybody to everybody", "halving-doubling": "halving and doubling",
    tree: "tree", server: "parameter server" };
  const kUnit = 3360;  // bytes that 2, 3, 4, 5, 6, 7 and 8 ranks divide into whole numbers
  let world, frames = [], frame = 0, timer = 0;

  // --- numbers ------------------------------------------------------------------------------

  const kLargest = Math.max(...report.gradients.flat().map(Math.abs));
  const kPower = Math.max(0, Math.ceil(-Math.log10(kLargest) / 3) * 3);
  const shown = (value) => (value * 10 ** kPower).toFixed(2).replace("-", "−");
  const scaled = (value, units, step) => {
    let at = 0;
    while (at + 1 < units.length && value >= step * 0.9995) { value /= step; ++at; }
    return `${value.toPrecision(3).replace(/\.?0+$/, (zeros) => (zeros.startsWith(".") ? "" : zeros))} ${units[at]}`;
  };
  const bytes = (value) => scaled(value, ["B", "KB", "MB", "GB", "TB"], 1000);
  const seconds = (value) => scaled(value * 1e9, ["ns", "µs", "ms", "s"], 1000);
  const fixed = (value) => String(Number(value.toFixed(3)));
  const alpha = () => 2 ** (Number($("alpha").value)), beta = () => 2 ** (Number($("beta").value) / 1.2), size = () => kUnit * 2 ** Number($("size").value);

  // --- the ranks ----------------------------------------------------------------------------

  const chunkOf = ({ begin, end }) => {
    const at = world.chunks.findIndex(([first, last]) => first === begin && last === end);
    if (at >= 0) return `chunk ${at}`;
    if (begin === 0 && end === report.elements) return "all chunks";
    const inside = world.chunks.map(([first, last], i) => (first >= begin && last <= end ? i : -1)).filter((i) => i >= 0);
    return inside.length > 1 ? `chunks ${inside[0]} to ${inside[inside.length - 1]}` : `numbers ${begin} to ${end - 1}`;
  };
  const isWhole = (term) => (term.match(/\d+/g) || []).length === world.ranks;

  function place(rank) {
    const angle = (2 * Math.PI * rank) / world.ranks - Math.PI / 2;
    return [200 + 150 * Math.cos(angle), 200 + 150 * Math.sin(angle)];
  }
  function line(from, to, bend) {
    const [[x0, y0], [x1, y1]] = [place(from), place(to)], length = Math.hypot(x1 - x0, y1 - y0);
    const [ux, uy] = [(x1 - x0) / length, (y1 - y0) / length], [nx, ny] = [-uy * bend, ux * bend];
    const start = [x0 + ux * 34 + nx * 0.3, y0 + uy * 34 + ny * 0.3], end = [x1 - ux * 40 + nx * 0.3, y1 - uy * 40 + ny * 0.3];
    const middle = [(start[0] + end[0]) / 2 + nx, (start[1] + end[1]) / 2 + ny];
    return { path: `M${start} Q${middle} ${end}`, middle: [(start[0] + end[0]) / 4 + middle[0] / 2, (start[1] + end[1]) / 4 + middle[1] / 2] };
  }
  function drawPicture(now) {
    const adds = new Set(now.messages.filter((each) => each.adds).map((each) => each.to));
    let svg = '<defs><marker id="head" viewBox="0 0 10 10" refX="7" refY="5" markerWidth="5" markerHeight="5" orient="auto-start-reverse"><path d="M0 0 10 5 0 10z"/></marker></defs>';
    for (const { rank, peer } of now.waits) svg += `<path class="waiting" d="${line(rank, peer, -26).path}"/>`;
    // Towards the centre, where no rank stands; of two that meet one goes the other way.
    const meets = ({ from, to }) => now.messages.some((each) => each.from === to && each.to === from);
    const bend = (each) => 22 * (meets(each) || (each.to - each.from + world.ranks) % world.ranks <= world.ranks / 2 ? 1 : -1);
    const lines = now.messages.map((each) => ({ each, ...line(each.from, each.to, bend(each)) }));
    for (const { each, path } of lines)
      svg += `<path class="message" data-from="${each.from}" data-to="${each.to}" d="${path}" marker-end="url(#head)"/>`;
    if (world.ranks <= 4 || now.messages.length <= 8)
      for (const { each, middle } of lines) svg += `<text class="what" x="${middle[0]}" y="${middle[1]}">${chunkOf(each).replace(/chunks? /, "").replace("all chunks", "all")}</text>`;
    now.ranks.forEach((rank, i) => {
      const [x, y] = place(i), waits = now.waits.some((each) => each.rank === i);
      svg += `<g class="rank${adds.has(i) ? " adds" : ""}${waits ? " waits" : ""}${rank.done ? " done" : ""}" data-rank="${i}"><circle cx="${x}" cy="${y}" r="30"/><text x="${x}" y="${y}">${i}</text></g>`;
    });
    $("picture").innerHTML = svg;
  }
  function drawMessages(now) {
    const items = now.messages.map((each) => `<li data-from="${each.from}" data-to="${each.to}" data-begin="${each.begin}" data-end="${each.end}">` +
      `rank ${each.from} → rank ${each.to}: ${chunkOf(each)}${each.adds ? ", which it adds to its own" : each.memory === "scratch" ? ", kept apart" : ", in the place of its own"}</li>`);
    for (const { rank, peer } of now.waits)
      items.push(`<li class="waits" data-rank="${rank}" data-peer="${peer}">then rank ${rank} waits for rank ${peer}</li>`);
    $("messages").innerHTML = items.join("");
    const count = now.messages.length, done = now.ranks.filter((rank) => rank.done).length;
    $("said").textContent = frame === 0 ? "Each rank has gradients of its own picture; the first messages are sent."
      : frame + 1 === frames.length ? "Every rank has the sum of all."
      : `${count === 1 ? "One message arrives" : `${count} messages arrive`}; ` +
        `${now.waits.length === world.ranks ? "then all wait for others" : `${now.waits.length} of ${world.ranks} ranks wait for others`}${done ? `, ${done} ${done === 1 ? "has its" : "have their"} result` : ""}.`;
  }
  function drawHeld(now) {
    $("held").tHead.innerHTML = `<tr><th scope="col">rank</th>${world.chunks.map((_, i) => `<th scope="col">chunk ${i}</th>`).join("")}</tr>`;
    $("held").tBodies[0].innerHTML = now.ranks.map((rank, r) => `<tr><th scope="row">${r}</th>${world.chunks.map(([begin, end]) => {
      const changed = now.changed.some((each) => each.rank === r && each.begin < end && begin < each.end);
      const term = rank.terms[begin], whole = isWhole(term);
      return `<td class="${whole ? "whole" : changed ? "arrived" : ""}" data-value="${rank.values[begin]}" data-term="${term}">${shown(rank.values[begin])}<small>${term.replace(/^\((.*)\)$/, "$1")}</small></td>`;
    }).join("")}</tr>`).join("");
  }
  function drawAgreement() {
    const last = frames[frames.length - 1];
    let wrong = 0, orders = 0;
    for (const rank of last.ranks)
      for (let i = 0; i < report.elements; ++i) {
        if (!Object.is(rank.values[i], Math.fround(world.sums[i]))) ++wrong;
        if (rank.terms[i] !== world.orders[i]) ++orders;
      }
    const agreement = $("agreement");
    agreement.dataset.wrong = wrong;
    agreement.dataset.orders = orders;
    agreement.className = wrong + orders ? "different" : "";
    agreement.textContent = wrong + orders
      ? `${wrong} sums and ${orders} orders of additions differ from the program's`
      : `At the end all ${world.ranks} ranks hold the program's sums, bit for bit: each number is added up in the order ` +
        `${[...new Set(world.orders)].slice(0, 2).map((order) => order.replace(/^\((.*)\)$/, "$1")).join(" or ")}${new Set(world.orders).size > 2 ? ", and so on by chunk" : ""}.`;
  }

  function go(to) {
    frame = Math.max(0, Math.min(to, frames.length - 1));
    $("step").textContent = $("scrub").value = frame;
    drawPicture(frames[frame]);
    drawMessages(frames[frame]);
    drawHeld(frames[frame]);
  }
  function pause() {
    clearInterval(timer);
    timer = 0;
    $("play").textContent = "▶ Play";
  }
  function play() {
    if (frame + 1 >= frames.length) go(0);
    $("play").textContent = "❚❚ Pause";
    timer = setInterval(() => (frame + 1 >= frames.length ? pause() : go(frame + 1)), 1200);
  }
  const toggle = () => (timer ? pause() : play());

  // --- the price ----------------------------------------------------------------------------

  function drawPrices() {
    const [a, b, s] = [alpha(), beta(), size()];
    $("alpha").parentElement.querySelector("output").textContent = seconds(a);
    $("beta").parentElement.querySelector("output").textContent = `${bytes(b)}/s`;
    $("size").parentElement.querySelector("output").textContent = bytes(s);
    const rows = report.ways.map(({ name, worlds }) => {
      const { latencies, volumes } = worlds.find(({ ranks }) => ranks === world.ranks);
      return { name, latencies, volumes, latency: latencies * a, volume: (volumes * s) / b };
    });
    const least = Math.min(...rows.map(({ latency, volume }) => latency + volume)), most = Math.max(...rows.map(({ latency, volume }) => latency + volume));
    $("prices").tBodies[0].innerHTML = rows.map((row) => {
      const time = row.latency + row.volume, share = (part) => `${(100 * part) / most}%`;
      return `<tr data-way="${row.name}" class="${row.name === $("way").value ? "chosen" : ""}${time === least ? " cheapest" : ""}"><td>${kNames[row.name]}</td>` +
        `<td class="n" data-value="${time}">⊖ ${seconds(time)}</td><td class="bar"><span class="latency" style="width:${share(row.latency)}"></span><span class="volume" style="width:${share(row.volume)}"></span></td>` +
        `<td class="n">${row.latencies}</td><td class="n">${fixed(row.volumes)}</td></tr>`;
    }).join("");
    const chosen = rows.find(({ name }) => name === $("way").value);
    $("formula").textContent = `${kNames[chosen.name].split(":")[0]}, ${world.ranks} ranks: ${chosen.latencies} α + ${fixed(chosen.volumes)} S / β = ` +
      `${seconds(chosen.latency)} + ${seconds(chosen.volume)} = ${seconds(chosen.latency + chosen.volume)} (modelled)`;
    $("prices").caption.textContent = `An all-reduce of ${bytes(s)} by ${world.ranks} ranks; in the bars latency, then bandwidth. All gradients of ${report.model} are ${bytes(report.bytes)}.`;
  }

  // --- the whole ----------------------------------------------------------------------------

  function choose() {
    pause();
    const way = report.ways.find(({ name }) => name === $("way").value);
    world = way.worlds.find(({ ranks }) => ranks === Number($("ranks").value));
    frames = Run.frames(world, report.gradients, report.elements);
    $("scrub").max = $("steps").textContent = frames.length - 1;
    $("legend").innerHTML = `The first number of each chunk${kPower ? `, times 10<sup>${kPower}</sup>` : ""}. Below it: the ranks in its sum`;
    go(0);
    drawAgreement();
    drawPrices();
    document.body.dataset.ready = String(Number(document.body.dataset.ready || 0) + 1);
  }
  const jumps = { first: () => go(0), back: () => go(frame - 1), forth: () => go(frame + 1), last: () => go(Infinity) };
  for (const [id, jump] of Object.entries(jumps)) $(id).addEventListener("click", () => { pause(); jump(); });
  $("play").addEventListener("click", toggle);
  $("scrub").addEventListener("input", () => { pause(); go(Number($("scrub").value)); });
  $("setup").addEventListener("submit", (event) => event.preventDefault());
  $("setup").addEventListener("input", (event) => (event.target.type === "range" ? drawPrices() : choose()));
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, select, button") || event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = { " ": toggle, Home: jumps.first, End: jumps.last,
      ArrowLeft: () => { pause(); jumps.back(); }, ArrowRight: () => { pause(); jumps.forth(); } };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });

  $("subtitle").textContent = `Ranks that train together need the sum of their gradients. These are ${report.elements} gradients of a ${report.model} ` +
    `(${report.parameter}), from one step with a different picture on each rank. The messages follow the program's own schedules.`;
  $("way").replaceChildren(...report.ways.map(({ name }) => new Option(kNames[name], name, false, name === "ring")));
  $("ranks").replaceChildren(...report.ways[0].worlds.map(({ ranks }) => new Option(ranks, ranks, false, ranks === 4)));
  $("size").value = Math.round(Math.log2(report.bytes / kUnit));
  choose();
})();
