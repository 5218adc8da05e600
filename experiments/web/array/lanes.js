// What happens when: units and stalls of the whole program, and waves of single signals, on one axis.
// SPDX-License-Identifier: Apache-2.0
"use strict";
const Lanes = (() => {
  const kLane = 20, kGap = 6, kMostWaves = 6000;
  const kUnits = ["load", "weights", "compute", "store"];
  const { fromBf16, float, short, hex } = Numbers;
  const svg = (name, attributes, parent) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (parent) parent.append(element);
    return element;
  };

  let picture, names, cursor, scale = 4, answer;

  const at = (cycle) => cycle * scale;

  function row(y, name) {
    const text = svg("text", { x: 0, y: y + kLane - 6, class: "name" }, names);
    text.textContent = name;
  }

  function bar(y, from, to, kind, words) {
    const rect = svg("rect", { x: at(from), y: y + 2, width: Math.max(1, (to - from) * scale - 0.5),
      height: kLane - 4, class: kind }, picture);
    svg("title", {}, rect).textContent = `${words}, cycles ${from} to ${to - 1}`;
  }

  function ticks(height) {
    const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000].find((s) => s * scale >= 44) || 10000;
    for (let cycle = 0; cycle < answer.recorded; cycle += step) {
      svg("line", { x1: at(cycle), x2: at(cycle), y1: 0, y2: height, class: "tick" }, picture);
      svg("text", { x: at(cycle) + 2, y: 11, class: "tick-name" }, picture).textContent = cycle;
    }
  }

  function units(top) {
    kUnits.forEach((unit, i) => {
      const y = top + i * kLane;
      row(y, unit);
      for (const { unit: owner, start, end, text } of answer.program)
        if (owner === unit && start < answer.recorded)
          bar(y, start, Math.max(start + 1, Math.min(end, answer.recorded)), `unit ${text.split(" ")[0]}`, text);
    });
    const y = top + kUnits.length * kLane;
    row(y, "array waits");
    for (const [cause, from, to] of answer.stalls)
      if (from < answer.recorded) bar(y, from, Math.min(to, answer.recorded), `stall ${cause}`, `waits: ${cause}`);
    return y + kLane + kGap;
  }

  // One bit: a line that goes up and down. More: boxes with what is in them.
  function wave(y, { name, bits, values, show }) {
    row(y, name);
    const high = y + 4, low = y + kLane - 5;
    if (bits === 1) {
      let path = "";
      for (let t = 0; t < values.length; ++t)
        if (t === 0 || values[t] !== values[t - 1])
          path += `${t === 0 ? "M" : "H"}${at(t)}${t === 0 ? "," : "V"}${values[t] ? high : low}`;
      svg("path", { d: `${path}H${at(values.length)}`, class: "wave" }, picture);
      return;
    }
    for (let t = 0, from = 0; t < values.length; ++t) {
      if (t + 1 < values.length && values[t + 1] === values[from]) continue;
      const width = (t + 1 - from) * scale - 1, words = show(values[from]);
      svg("rect", { x: at(from), y: high, width: Math.max(0.5, width), height: low - high, class: "bus" }, picture);
      if (width > 6.2 * words.length)
        svg("text", { x: at(from) + 3, y: low - 1, class: "in-bus" }, picture).textContent = words;
      from = t + 1;
    }
  }

  // Registers of the chosen PE as waves.
  function waves_of(shown, { row: r, column: c }) {
    const length = Math.min(answer.recorded, kMostWaves);
    const series = (field) => Uint32Array.from({ length }, (_, t) => shown.pe(t, r, c)[field]);
    const weight = (v) => (v & Stage.kEnable ? short(fromBf16(v), 3) : "off");
    return [
      { name: `activation`, bits: 16, values: series("activation"), show: (v) => short(fromBf16(v), 3) },
      { name: `weight`, bits: 17, values: series("weight"), show: weight },
      { name: `next weight`, bits: 17, values: series("waiting"), show: weight },
      { name: `passing by`, bits: 17, values: series("passing"), show: weight },
      { name: `sum`, bits: 32, values: series("sum"), show: (v) => short(float(v), 4) }];
  }

  function draw(element, from, { shown, chosen, signals, jump }) {
    answer = from;
    const narrow = element.clientWidth < 600, nameWidth = narrow ? 104 : 136;
    const room = element.clientWidth - nameWidth - 24;
    scale = Math.max(answer.rtl ? 7 : 3, room / answer.recorded);
    if (scale * answer.recorded > 30000) scale = Math.max(1, 30000 / answer.recorded);
    names = svg("svg", { class: "names", "aria-hidden": "true" });
    picture = svg("svg", { class: "lanes", role: "img", "aria-label": "Units, stalls and signals by cycle" });
    let y = units(18);
    for (const one of waves_of(shown, chosen)) { wave(y, one); y += kLane; }
    y += kGap;
    for (const signal of signals) {
      wave(y, { ...signal, values: signal.values.subarray(0, kMostWaves), show: (v) => hex(v, Math.ceil(signal.bits / 4)) });
      y += kLane;
    }
    ticks(y);
    cursor = svg("rect", { y: 0, width: Math.max(1.5, scale), height: y, class: "cursor" }, picture);
    for (const [element, width] of [[picture, at(answer.recorded) + 8], [names, nameWidth]]) {
      element.setAttribute("width", width);
      element.setAttribute("height", y + 4);
    }
    picture.addEventListener("click", (event) => {
      const cycle = Math.floor((event.clientX - picture.getBoundingClientRect().left) / scale);
      if (cycle >= 0 && cycle < answer.recorded) jump(cycle);
    });
    element.replaceChildren(names, picture);
  }

  function move(element, cycle) {
    if (!cursor) return;
    cursor.setAttribute("x", at(cycle));
    const room = element.clientWidth - names.clientWidth, x = at(cycle);
    if (x - 20 < element.scrollLeft || x + 60 > element.scrollLeft + room) element.scrollLeft = x - room / 3;
  }

  return { draw, move };
})();
