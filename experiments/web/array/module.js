// The WebAssembly that computes: twin and RTL of the array. It lies in this page as base64 of gzip.
// SPDX-License-Identifier: Apache-2.0
"use strict";
const Module = (() => {
  const kPeWords = 6;
  const text = new TextDecoder(), bytes = new TextEncoder();
  let compiled;

  async function inflated(base64) {
    const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  // A browser has a clock and no files: what else the C library asks the system for is not there.
  function imports(memory) {
    const kNotThere = 8;  // no such descriptor
    const system = {
      clock_time_get(clock, precision, at) {
        new DataView(memory()).setBigUint64(at, BigInt(Math.round(performance.now() * 1e6)), true);
        return 0;
      },
      proc_exit(code) { throw new Error(`the program ended with ${code}`); },
    };
    const asked = WebAssembly.Module.imports(compiled).filter(({ module }) => module !== "triptych");
    const failed = (at, length) => { throw new Error(text.decode(new Uint8Array(memory(), at, length))); };
    return { wasi_snapshot_preview1: Object.fromEntries(asked.map(({ name }) => [name, system[name] || (() => kNotThere)])),
      triptych: { failed } };
  }

  // An instance with a memory of its own; one that has failed is replaced by a new one.
  function open() {
    let instance;
    const memory = () => instance.exports.memory.buffer;
    const start = () => {
      instance = new WebAssembly.Instance(compiled, imports(memory));
      instance.exports._initialize();
    };
    const read = (at) => {
      const all = new Uint8Array(memory(), at);
      return JSON.parse(text.decode(all.subarray(0, all.indexOf(0))));
    };
    const guarded = (call) => {
      try { return call(); } catch (error) { start(); throw error; }
    };
    start();
    return {
      // The answer of a function to a request, or to numbers.
      ask: (name, request, ...numbers) => guarded(() => {
        if (request) {
          const encoded = bytes.encode(JSON.stringify(request));
          const at = instance.exports.request_memory(encoded.length);
          new Uint8Array(memory(), at, encoded.length).set(encoded);
        }
        return read(instance.exports[name](...numbers));
      }),
      // `count` numbers of a kind (Uint32Array, say) where a function says they lie.
      copy: (Kind, count, name, ...numbers) => guarded(() => {
        const at = instance.exports[name](...numbers);
        return new Kind(memory().slice(at, at + Kind.BYTES_PER_ELEMENT * count));
      }),
    };
  }
  let array;

  // Registers of all PEs in all cycles of the last run.
  function recording(rtl, answer) {
    const { rows, columns, recorded } = answer;
    const pes = array.copy(Uint32Array, recorded * rows * columns * kPeWords, "pes", rtl);
    const tops = array.copy(Uint32Array, recorded * columns * 2, "tops");
    return {
      pe(t, r, c) {
        const at = ((t * rows + r) * columns + c) * kPeWords;
        return { activation: pes[at], weight: pes[at + 1], waiting: pes[at + 2], passing: pes[at + 3],
          sum: pes[at + 4], known: pes[at + 5] };
      },
      top(t, c) {
        const at = (t * columns + c) * 2;
        return { value: tops[at], known: tops[at + 1] };
      },
    };
  }

  return {
    open,
    async load(base64) {
      compiled = await WebAssembly.compile(await inflated(base64));
      array = open();
    },
    machines: () => array.ask("machines"),
    layers: () => array.ask("layers"),
    // {"lines"}: of the instructions of a text.
    assemble: (program) => array.ask("assemble", { program }),
    // The answer, with `twin` and, where it was asked for, `rtl` as recordings.
    run(request) {
      const answer = array.ask("run", request);
      answer.twin = recording(0, answer);
      answer.rtl = request.rtl ? recording(1, answer) : null;
      for (const [i, signal] of (answer.signals || []).entries())
        signal.values = array.copy(Uint32Array, answer.recorded, "signal", i);
      const moving = (answer.signals || []).find(({ name }) => name === "weights_moving");
      // Whether weights took a step on their way down at the end of the cycle before.
      answer.moved = (t) => Boolean(moving && t > 0 && moving.values[t - 1]);
      return answer;
    },
  };
})();
