// U-Net's forward pass by ONNX Runtime, all its optimisations on.
//   unet_onnxruntime.cjs infer FILE.onnx SIZE BATCH THREADS REPEATS
// Prints one JSON object: version, seconds of each run after two that warm up, peak memory.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const fs = require('fs');
const ort = require('onnxruntime-node');

async function main(file, size, batch, threads, repeats) {
  const session = await ort.InferenceSession.create(file, {
    executionProviders: ['cpu'],
    graphOptimizationLevel: 'all',
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
  });
  const pixels = Float32Array.from({ length: batch * size * size }, (_, i) => Math.sin(0.7 * i));
  const x = new ort.Tensor('float32', pixels, [batch, 1, size, size]);
  const seconds = [];
  for (let run = 0; run < 2 + repeats; ++run) {
    const start = process.hrtime.bigint();
    await session.run({ x });
    if (run >= 2) seconds.push(Number(process.hrtime.bigint() - start) * 1e-9);
  }
  const status = fs.readFileSync('/proc/self/status', 'utf8');
  const peak = Number(status.match(/VmHWM:\s+(\d+)/)[1]) / 1024;
  const version = ort.env.versions.node;
  console.log(JSON.stringify({ version, peak_memory_mib: peak, seconds }));
}

const [, file, ...numbers] = process.argv.slice(2);
main(file, ...numbers.map(Number));
