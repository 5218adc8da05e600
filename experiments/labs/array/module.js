// The WebAssembly that computes: twin and RTL of the array. It lies in this page as base64 of gzip.
"use strict";
const Module = (() => {
  const kPeWords = 6;
  const text = new TextDecoder(), bytes = new TextEncoder();
  let compiled, instance;

  async function inflated(base64) {
    const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  const memory = () => instance.exports.memory.buffer;

  // A browser has no files: what the C library asks the system for is not there.
  function imports() {
    const kNotThere = 8;  // no such descriptor
    const wasi = new Proxy({}, { get: (_, name) => name === "proc_exit"
      ? (code) => { throw new Error(`the simulator ended with ${code}`); } : () => kNotThere });
    const list = WebAssembly.Module.imports(compiled);
    const system = Object.fromEntries(list.filter((i) => i.module !== "triptych").map((i) => [i.name, wasi[i.name]]));
    const failed = (at, length) => { throw new Error(text.decode(new Uint8Array(memory(), at, length))); };
    return { wasi_snapshot_preview1: system, triptych: { failed } };
  }

  function start() {
    instance = new WebAssembly.Instance(compiled, imports());
    instance.exports._initialize();
  }

  function read(at) {
    const all = new Uint8Array(memory(), at);
    return JSON.parse(text.decode(all.subarray(0, all.indexOf(0))));
  }

  // After a failure the instance is not used again.
  function guarded(call) {
    try { return call(); } catch (error) { start(); throw error; }
  }

  const words = (at, count) => new Uint32Array(memory().slice(at, at + 4 * count));

  // Registers of all PEs in all cycles of the last run.
  function recording(rtl, answer) {
    const { rows, columns, recorded } = answer;
    const pes = words(instance.exports.pes(rtl), recorded * rows * columns * kPeWords);
    const tops = words(instance.exports.tops(rtl), recorded * columns * 2);
    return {
      pe(t, r, c) {
        const at = ((t * rows + r) * columns + c) * kPeWords;
        return { activation: pes[at], weight: pes[at + 1], shadow: pes[at + 2], moving: pes[at + 3],
          sum: pes[at + 4], known: pes[at + 5] };
      },
      top(t, c) {
        const at = (t * columns + c) * 2;
        return { value: tops[at], known: tops[at + 1] };
      },
    };
  }

  return {
    async load(base64) {
      compiled = await WebAssembly.compile(await inflated(base64));
      start();
    },
    machines: () => guarded(() => read(instance.exports.machines())),
    layers: () => guarded(() => read(instance.exports.layers())),
    // The answer, with `twin` and, where it was asked for, `rtl` as recordings.
    run(request) {
      return guarded(() => {
        const encoded = bytes.encode(JSON.stringify(request));
        const at = instance.exports.request_memory(encoded.length);
        new Uint8Array(memory(), at, encoded.length).set(encoded);
        const answer = read(instance.exports.run());
        answer.twin = recording(0, answer);
        answer.rtl = request.rtl ? recording(1, answer) : null;
        for (const [i, signal] of (answer.signals || []).entries())
          signal.values = words(instance.exports.signal(i), answer.recorded);
        return answer;
      });
    },
  };
})();
