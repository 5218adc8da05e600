// The button that turns light into dark.
// SPDX-License-Identifier: Apache-2.0
"use strict";
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = root.dataset.theme || (dark ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
});
