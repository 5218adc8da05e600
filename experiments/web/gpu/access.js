// One request of a warp as a picture: its lanes, and the sectors or the banks that they touch.
// SPDX-License-Identifier: Apache-2.0
"use strict";
const Access = (() => {
  const kLanes = 32, kSector = 32, kWord = 4, kBanks = 32;
  const count = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
  const hue = (i) => (i * 47 + 210) % 360;
  const words = ({ at, bytes }, lane) =>
    Array.from({ length: Math.max(1, bytes / kWord) }, (_, i) => Math.floor(at[lane] / kWord) + i);

  // Sectors in the order of memory, each with the lanes of its words.
  function sectors(request) {
    const found = new Map();
    request.at.forEach((at, lane) => {
      if (at === null) return;
      for (const word of words(request, lane)) {
        const number = Math.floor(word * kWord / kSector);
        if (!found.has(number)) found.set(number, Array.from({ length: kSector / kWord }, () => []));
        found.get(number)[word % (kSector / kWord)].push(lane);
      }
    });
    return [...found].sort(([a], [b]) => a - b).map(([number, lanes]) => ({ number, lanes }));
  }

  // Passes through the banks, each with the lanes that every bank serves. Several words a lane are
  // served by half warps or quarters; lanes that want one word share a pass.
  function passes(request) {
    const groups = Math.max(1, request.bytes / kWord), lanes = kLanes / groups, all = [];
    for (let group = 0; group < groups; ++group) {
      const banks = Array.from({ length: kBanks }, () => new Map());
      for (let lane = group * lanes; lane < (group + 1) * lanes; ++lane) {
        if (request.at[lane] === null) continue;
        for (const word of words(request, lane)) {
          const bank = banks[word % kBanks];
          bank.set(word, [...(bank.get(word) || []), lane]);
        }
      }
      const count = Math.max(...banks.map((bank) => bank.size));
      for (let pass = 0; pass < count; ++pass)
        all.push(banks.map((bank) => [...bank].sort(([a], [b]) => a - b)[pass]?.[1] || []));
    }
    return all;
  }

  // Different addresses, each with its lanes: the cache of constants serves one after another.
  function addresses({ at }) {
    const found = new Map();
    at.forEach((byte, lane) => { if (byte !== null) found.set(byte, [...(found.get(byte) || []), lane]); });
    return [...found].sort(([a], [b]) => a - b).map(([number, lanes]) => ({ number, lanes: [lanes] }));
  }

  const names = (lanes) => (lanes.length > 2 ? `${lanes[0]}…${lanes.at(-1)}` : lanes.join(" "));
  const cell = (lanes, colour) => (lanes.length === 0 ? "<span></span>"
    : `<span class="on" style="--hue:${hue(colour)}" title="lane ${lanes.join(", ")}">${names(lanes)}</span>`);

  function says(request, space, access, drawn) {
    const active = request.at.filter((at) => at !== null).length;
    const what = `${count(active, "lane")} ${access}${active === 1 ? "s" : ""} ${count(request.bytes, "byte")}${active === 1 ? "" : " each"}, of ${request.of}`;
    if (space === "shared") return `${what}: ${count(drawn, "pass").replace("passs", "passes")} through the banks.`;
    if (space === "constant") return `${what}: ${count(drawn, "pass").replace("passs", "passes")} through the cache of constants.`;
    const asked = new Set(request.at.filter((at) => at !== null)).size * request.bytes;
    return `${what}: ${count(drawn, "sector")}, ${drawn * kSector} bytes moved for ${asked} different ones (${
      (100 * asked / (drawn * kSector)).toFixed(1)} %).`;
  }

  // Draws it; `data-drawn` is what the picture counts, `data-cost` what the emulator counted.
  function draw(element, request, space, access) {
    const parts = { global: sectors, shared: passes, constant: addresses }[space](request);
    const first = (lane) => parts.findIndex((part) => (part.lanes || part).some((lanes) => lanes.includes(lane)));
    const lanes = request.at.map((at, lane) => (at === null ? `<span title="lane ${lane} waits">–</span>`
      : `<span class="on" style="--hue:${hue(first(lane))}" title="lane ${lane}: byte ${at}">${lane}</span>`));
    const memory = space === "constant"
      ? `<h3>Addresses, a pass for each</h3><div class="sectors">${parts.map(({ number, lanes: [who] }, i) =>
        `<div class="sector address"><b>byte ${number}</b>${cell(who, i)}</div>`).join("")}</div>`
      : space === "global"
      ? `<h3>Sectors of 32 bytes, eight words each, with the lanes that read them</h3><div class="sectors">${parts.map(({ number, lanes: of }, i) =>
        `<div class="sector"><b>byte ${number * kSector}</b><div>${of.map((who) => cell(who, i)).join("")}</div></div>`).join("")}</div>`
      : `<h3>32 banks of a word, a row for each pass</h3><div class="scroll-x" tabindex="0" role="region" aria-label="Banks by pass"><div class="banks">${
        Array.from({ length: kBanks }, (_, bank) => `<span class="head">${bank}</span>`).join("")}${
        parts.map((row, i) => row.map((who) => cell(who, i)).join("")).join("")}</div></div>`;
    element.innerHTML = `<p class="says">${says(request, space, access, parts.length)}</p><h3>Lanes, coloured by sector or pass</h3><div class="scroll-x" tabindex="0" role="region" aria-label="Lanes of the warp"><div class="lanes32">${
      lanes.join("")}</div></div>${memory}`;
    element.dataset.drawn = parts.length;
    element.dataset.cost = request.cost;
  }

  return { draw, sectors, passes, addresses };
})();
