// Numbers as the array holds them, and as people read them.
// SPDX-License-Identifier: Apache-2.0
"use strict";
const Numbers = (() => {
  const view = new DataView(new ArrayBuffer(4));
  const float = (bits) => { view.setUint32(0, bits); return view.getFloat32(0); };
  const fromBf16 = (bits) => float((bits & 0xffff) << 16);
  // To nearest even, as the host does when it packs operands.
  function toBf16(value) {
    view.setFloat32(0, value);
    const bits = view.getUint32(0);
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fc0;
    return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
  }
  const hex = (value, digits) => "0x" + (value >>> 0).toString(16).padStart(digits, "0");

  // At most `digits` that count, no zeros behind them: "0.25", "−1.5", "3e5".
  function short(value, digits = 3) {
    if (Number.isNaN(value)) return "NaN";
    if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
    if (value === 0) return Object.is(value, -0) ? "−0" : "0";
    const size = Math.abs(value);
    let text = size >= 1e4 || size < 1e-3 ? value.toExponential(digits - 1) : value.toPrecision(digits);
    text = text.replace(/(\.\d*?)0+(e|$)/, "$1$2").replace(/\.(e|$)/, "$1").replace("e+", "e");
    return text.replace("-", "−");
  }
  // Sign, exponent and fraction of a bf16, for the curious.
  function parts(bits) {
    const text = (bits & 0xffff).toString(2).padStart(16, "0");
    return { sign: text[0], exponent: text.slice(1, 9), fraction: text.slice(9) };
  }
  const count = (value) => value.toLocaleString("en");
  return { float, fromBf16, toBf16, hex, short, parts, count };
})();
