// The explorer's pure modules, by Node's own test runner: `node --test tests/explorer/`.

import assert from "node:assert/strict";
import { test } from "node:test";

const from = (name) => import(new URL(`../../assets/explorer/${name}.js`, import.meta.url));
const { cellText, fittingDecimals, operand, percent, print, relation } = await from("numbers");
const { cellOf, move, selectCell, sources } = await from("focus");
const { hit, labelStride, squareCell, stageSizes } = await from("layout");
const { comparable, difference, largestChange, whatChanged } = await from("compare");
const { Matrix, hiddenBecause, unpack } = await from("payload");
const { limitOf, palette, shade } = await from("colour");

test("a printed number holds exactly what a reader computes with", () => {
  for (const number of [0.12345, -0.5, 3, 1e-9, -2.5e-7, 123456.789, 4.2e9]) {
    const { text, value, step } = print(number);
    const [mantissa, power] = text.replaceAll("\u2212", "-").split("×10");
    const digits = "⁰¹²³⁴⁵⁶⁷⁸⁹";
    const exponent = power ? Number([...power].map((c) => (c === "⁻" ? "-" : digits.indexOf(c))).join("")) : 0;
    assert.ok(Math.abs(Number(mantissa) * 10 ** exponent - value) <= Math.abs(value) * 1e-12, text);
    assert.ok(Math.abs(number - value) <= step / 2 + 1e-15, text);
  }
  assert.equal(print(0).text, "0");
  assert.equal(print(-Infinity).text, "\u2212∞");
});

test("= only where the printed numbers give the printed result", () => {
  assert.equal(relation(1.5 * 0.25, print(0.375)), "=");
  assert.equal(relation(-0.0008 + 0.02, print(0.0191)), "≈");
  assert.equal(relation(0.00005, print(0.0001)), "="); // a tie may round either way
  assert.equal(relation(0.4, print(0.4001)), "≈");
});

test("numbers in cells", () => {
  assert.equal(cellText(0, 2), "0");
  assert.equal(cellText(-0.5, 2), "\u22120.50");
  assert.equal(fittingDecimals([0.5, -12.25], 6, 0, 4), 2);
  assert.equal(fittingDecimals([0.5, -12.25, -Infinity], 3, 0, 4), null);
  assert.equal(operand(print(-1)), `(${print(-1).text})`);
  for (const share of [0.0001, 0.9999]) assert.match(percent(share), /^[<>]/);
  assert.deepEqual([0, 0.5, 1, 7, -0.11].map(percent), ["0 %", "50 %", "100 %", "7.00", "\u22120.11"]);
});

test("arrow keys stay inside, Home and End go to the row's ends", () => {
  const shape = { rows: 3, columns: 4 };
  assert.deepEqual(move({ row: 0, column: 0 }, [-1, 0], shape), { row: 0, column: 0 });
  assert.deepEqual(move({ row: 2, column: 3 }, [1, 0], shape), { row: 2, column: 3 });
  assert.deepEqual(move({ row: 1, column: 2 }, "Home", shape), { row: 1, column: 0 });
  assert.deepEqual(move({ row: 1, column: 2 }, "End", shape), { row: 1, column: 3 });
});

test("a pinned query and key survive a look at another matrix", () => {
  const weights = { rows: "query", columns: "key" };
  const context = { rows: "query", columns: "dimension" };
  let selection = selectCell({ query: 0, key: 0, dimension: 0 }, weights, 4, 2);
  selection = selectCell(selection, context, 4, 7);
  assert.deepEqual(cellOf(selection, weights, { rows: 6, columns: 6 }), { row: 4, column: 2 });
  assert.deepEqual(cellOf(selection, context, { rows: 3, columns: 5 }), { row: 2, column: 4 }); // clamped
  assert.deepEqual(sources({ rule: "dot", operands: ["q", "k"] }, 4, 2), { q: { row: 4 }, k: { row: 2 } });
});

test("layout: cells are whole pixels, fit the room, and points find their cell", () => {
  for (const T of [1, 6, 16, 64, 128]) {
    for (const width of [350, 700, 1100]) {
      const sizes = stageSizes("weights", { T, d_in: 16, d_out: 8, width, label: 60, tall: 800 });
      assert.equal(sizes.cell, Math.floor(sizes.cell));
      if (sizes.cell > 5) assert.ok(60 + sizes.tile + sizes.cell * T + sizes.sums <= width, `${T} ${width}`);
    }
  }
  assert.ok(squareCell(1024, 700) >= 3);
  assert.deepEqual(hit(19.9, 10, { rows: 2, columns: 2, width: 10, height: 10 }), { row: 1, column: 1 });
  assert.equal(hit(20, 0, { rows: 2, columns: 2, width: 10, height: 10 }), null);
  assert.equal(labelStride(5, 15), 3);
});

const float32 = (rows) => ({
  shape: [rows.length, rows[0].length],
  data: Buffer.from(new Float32Array(rows.flat()).buffer).toString("base64"),
});

function payload(weights, settings = {}) {
  return {
    query: "sentence=a+b",
    settings: { edits: [], mask: "causal", ...settings },
    tokens: [
      { text: "a", real: true },
      { text: " b", real: true },
    ],
    names: ["a", "b"],
    tensors: {
      weights: float32(weights),
      scaled: float32([[0.5, 3], [0.25, 1]]),
      masked: { shape: [2, 2], like: "scaled", hidden: Buffer.from([0b01000000]).toString("base64") },
    },
    visible: Buffer.from([0b10110000]).toString("base64"),
    kept: null,
    lesson: { steps: [], settings: { mask: "mask", edits: "edited numbers" }, matrices: { weights: { rows: "query", columns: "key", unit: true, operands: [] } } },
  };
}

test("a payload is unpacked to the numbers that were packed", () => {
  const run = unpack(payload([[1, 0], [0.25, 0.75]]));
  assert.deepEqual([...run.tensors.weights.row(1)], [0.25, 0.75]);
  assert.deepEqual([...run.tensors.weights.column(0)], [1, 0.25]);
  assert.equal(run.tensors.masked.at(0, 1), -Infinity);
  assert.deepEqual([run.visible(0, 0), run.visible(0, 1), run.visible(1, 0), run.visible(1, 1)], [true, false, true, true]);
  assert.equal(hiddenBecause(run, 0, 1), "future");
});

test("two runs are compared cell by cell, −∞ with −∞ too", () => {
  const a = unpack(payload([[1, 0], [0.25, 0.75]]));
  const b = unpack(payload([[0.5, 0.5], [0.25, 0.75]], { mask: "none" }));
  assert.ok(comparable(a, b));
  assert.deepEqual([...difference(a, b).tensors.weights.data], [-0.5, 0.5, 0, 0]);
  assert.deepEqual([...difference(a, b).tensors.masked.data], [0, 0, 0, 0]);
  assert.deepEqual(largestChange(a, b, "weights"), { row: 0, column: 0, from: 1, to: 0.5 });
  assert.match(whatChanged(a, b), /^Only the mask changed; largest move: a looking at a, 1\.00 → 0\.50\.$/);
});

test("colours: limits from finite numbers only, the middle of a signed scale is neutral", () => {
  assert.equal(limitOf([-Infinity, -2, 1]), 2);
  assert.equal(limitOf([0, 0]), 0);
  assert.equal(shade(0, false, 0), shade(0, false, 1));
  assert.equal(shade(0.125, true, 1, true), shade(0.5, true, 1));
  assert.equal(shade(-2, false, 2), 0);
  assert.equal(shade(2, false, 2), 255);
  for (const theme of ["light", "dark"]) {
    const { signed, unit } = palette(theme);
    const middle = [...signed.subarray(shade(0, false, 2) * 3, shade(0, false, 2) * 3 + 3)];
    assert.ok(middle.every((c, i) => Math.abs(c - unit[i]) <= 3), `${theme} ${middle}`);
  }
});

test("matrices know their shape", () => {
  assert.equal(new Matrix("x", 2, 2, new Float32Array([1, 2, 3, 4])).at(1, 0), 3);
});
