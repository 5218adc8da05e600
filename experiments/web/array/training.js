// A training run, step by step, in a WebAssembly instance of its own; the page stays alive between
// steps.
// SPDX-License-Identifier: Apache-2.0
"use strict";
const Training = (() => {
  const $ = (id) => document.getElementById(id);
  const kModel = "unet-s", kBatch = 4, kBurst = 20, kWide = 640, kTall = 200;
  let instance = null, begun = null, losses = [], seconds = [], busy = false;

  const seed = () => Math.max(0, Math.min(9999, Math.round(Number($("train-seed").value)) || 0));
  const later = () => new Promise((done) => setTimeout(done));

  function drawLosses() {
    const most = Math.max(...losses, 0.1), count = Math.max(kBurst, losses.length);
    const points = losses.map((loss, i) => `${(i + 0.5) / count * kWide},${kTall - 8 - loss / most * (kTall - 24)}`);
    $("train-loss").innerHTML = `<line x1="0" x2="${kWide}" y1="${kTall - 8}" y2="${kTall - 8}" /><text x="${kWide - 8}" y="18" text-anchor="end">loss by step, ${
      losses.length === 0 ? "none yet" : `${losses[0].toFixed(3)} → ${losses.at(-1).toFixed(3)}`}</text><polyline points="${points.join(" ")}"/>`;
    $("train-loss").dataset.losses = JSON.stringify(losses);
  }

  // One plane as grey, from 0 to `full`.
  function drawPlane(name, plane, height, width, full) {
    const canvas = $(name), context = canvas.getContext("2d"), picture = context.createImageData(width, height);
    for (let i = 0; i < plane.length; ++i) {
      const grey = Math.max(0, Math.min(255, Math.round(plane[i] / full * 255)));
      picture.data.set([grey, grey, grey, 255], 4 * i);
    }
    [canvas.width, canvas.height] = [width, height];
    context.putImageData(picture, 0, 0);
  }

  function drawState() {
    const { sha256, subnormals } = instance.ask("train_weights");
    $("train-hash").textContent = sha256;
    $("train-hash").dataset.steps = losses.length;
    const sorted = [...seconds].sort((a, b) => a - b), middle = sorted[sorted.length >> 1];
    $("train-state").dataset.stepSeconds = middle || "";
    $("train-state").textContent = losses.length === 0 ? `${begun.parameters.toLocaleString("en")} parameters, not trained yet.`
      : `${losses.length} steps, loss ${losses.at(-1).toFixed(4)}; ${(1000 * middle).toFixed(0)} ms a step here (measured).`;
    $("train-note").textContent = subnormals
      ? "A number below 1.2e-38 has occurred: browsers keep it, processors flush it, and the bits may differ from here on." : "";
    $("train-command").textContent = `triptych train --model ${kModel} --contract bf16-exact --batch ${kBatch} --seed ${seed()} --steps ${
      Math.max(losses.length, 1)} --json`;
    const { height, width } = instance.ask("train_predict", null, 0), pixels = height * width;
    drawPlane("train-image", instance.copy(Float32Array, pixels, "train_image"), height, width, 1);
    drawPlane("train-truth", instance.copy(Uint8Array, pixels, "train_truth"), height, width, 1);
    const classes = instance.copy(Uint8Array, pixels, "train_classes");
    drawPlane("train-mask", classes, height, width, 1);
    $("train-mask").dataset.classes = classes.join("");
  }

  function begin() {
    instance = instance || Module.open();
    begun = instance.ask("train_begin", { model: kModel, seed: seed(), batch: kBatch });
    [losses, seconds] = [[], []];
    drawLosses();
  }

  async function guarded(work) {
    if (busy) return;
    busy = true;
    for (const id of ["train-go", "train-anew", "train-seed"]) $(id).disabled = true;
    try { await work(); } catch (error) { $("train-state").textContent = error.message; instance = begun = null; }
    for (const id of ["train-go", "train-anew", "train-seed"]) $(id).disabled = false;
    busy = false;
  }

  const train = () => guarded(async () => {
    if (!begun) {
      $("train-state").textContent = "Draws pictures and plans the step …";
      await later();
      begin();
    }
    for (let i = 0; i < kBurst; ++i) {
      await later();
      const from = performance.now();
      losses.push(instance.ask("train_step").loss);
      seconds.push((performance.now() - from) / 1000);
      $("train-state").textContent = `step ${losses.length}, loss ${losses.at(-1).toFixed(4)}`;
      drawLosses();
    }
    await later();
    drawState();
  });
  const anew = () => guarded(async () => { begin(); await later(); drawState(); });

  $("train-go").addEventListener("click", train);
  $("train-anew").addEventListener("click", anew);
  $("train-seed").addEventListener("change", anew);
  return { train };
})();
