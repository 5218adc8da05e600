// Everything on the page reads without this script; it adds tooltips that follow finger and mouse,
// the choice of a theme, the report as a file, and opens short tables for the printer.
// SPDX-License-Identifier: Apache-2.0
"use strict";
(() => {
  const root = document.documentElement;
  const tip = document.getElementById("tip");
  let shown = null;

  // The browser's own tooltips would come twice.
  for (const mark of document.querySelectorAll(".chart .mark")) {
    const title = mark.querySelector("title");
    mark.dataset.tip = title.textContent;
    title.remove();
  }

  function hide() {
    if (shown) shown.classList.remove("on");
    shown = null;
    tip.hidden = true;
  }

  function show(mark, box) {
    if (mark !== shown) {
      hide();
      shown = mark;
      mark.classList.add("on");
      tip.textContent = mark.dataset.tip;
    }
    tip.hidden = false;
    const gap = 10;
    const width = tip.offsetWidth, height = tip.offsetHeight;
    const middle = box.left + box.width / 2;
    const left = Math.min(Math.max(gap, middle - width / 2), root.clientWidth - width - gap);
    const above = box.top - height - gap;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > gap ? above : box.bottom + gap}px`;
  }

  // What lies nearest to the pointer: a bar when it is inside, a point up to 28 pixels away.
  function nearest(chart, x, y) {
    let best = null, least = 28 * 28;
    for (const mark of chart.querySelectorAll(".mark")) {
      const shape = mark.querySelector(".hit") || mark.querySelector(".bar");
      const box = shape.getBoundingClientRect();
      const round = shape.classList.contains("hit");
      const from = (low, high, at) => Math.max(low - at, 0, at - high);
      const dx = round ? box.left + box.width / 2 - x : from(box.left, box.right, x);
      const dy = round ? box.top + box.height / 2 - y : from(box.top, box.bottom, y);
      const distance = dx * dx + dy * dy;
      if (distance < least) [best, least] = [{ mark, box }, distance];
    }
    return best;
  }

  for (const chart of document.querySelectorAll(".chart")) {
    const point = (event) => {
      const found = nearest(chart, event.clientX, event.clientY);
      if (found) show(found.mark, found.box); else hide();
    };
    chart.addEventListener("pointermove", point);
    chart.addEventListener("pointerdown", point);
    chart.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") hide(); });
  }
  document.addEventListener("scroll", hide, { passive: true, capture: true });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  document.addEventListener("pointerdown", (event) => { if (!event.target.closest(".chart")) hide(); });

  // Theme: as the system has it, light, dark. Pages from a disk may have no storage.
  const themes = ["system", "light", "dark"];
  const names = { system: "Auto", light: "Light", dark: "Dark" };
  const button = document.getElementById("theme");
  const storage = (act) => { try { return act(window.localStorage); } catch { return null; } };
  function choose(theme) {
    if (theme === "system") root.removeAttribute("data-theme");
    else root.setAttribute("data-theme", theme);
    button.textContent = names[theme];
    button.title = `Theme: ${theme === "system" ? "as the system has it" : theme}`;
    button.dataset.theme = theme;
  }
  const kept = storage((store) => store.getItem("triptych-theme"));
  choose(themes.includes(kept) ? kept : "system");
  button.hidden = false;
  button.addEventListener("click", () => {
    const next = themes[(themes.indexOf(button.dataset.theme) + 1) % themes.length];
    choose(next);
    storage((store) => store.setItem("triptych-theme", next));
  });

  const report = document.getElementById("report");
  const save = document.getElementById("save");
  if (report) {
    save.hidden = false;
    save.addEventListener("click", () => {
      const text = JSON.stringify(JSON.parse(report.textContent), null, 2);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
      link.download = "report.json";
      link.click();
      URL.revokeObjectURL(link.href);
    });
  }

  // Where the reader is, in the table of contents.
  const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
  if ("IntersectionObserver" in window) {
    const seen = new Set();
    const watcher = new IntersectionObserver((entries) => {
      for (const entry of entries) seen[entry.isIntersecting ? "add" : "delete"](entry.target.id);
      const first = [...links.keys()].find((id) => seen.has(id));
      for (const [id, link] of links) link.classList.toggle("here", id === first);
    }, { rootMargin: "-10% 0px -60% 0px" });
    for (const section of document.querySelectorAll("section")) watcher.observe(section);
  }

  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details.short:not([open])")];
    for (const one of opened) one.open = true;
  });
  window.addEventListener("afterprint", () => { for (const one of opened) one.open = false; });
})();
