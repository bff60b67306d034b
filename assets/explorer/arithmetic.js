// One cell taken apart: the rule that the lesson declares for its matrix, carried out on printed numbers.
// Pure: a run and a cell in, a description out. Lines hold "=" only where the printed numbers give the printed result.

import { hiddenBecause } from "./payload.js";
import { operand, print, relation } from "./numbers.js";

export const INLINE = 4; // up to so many products are written out in a line

/**
 * explain(run, parameters, tensor, row, column) →
 *   {title, result, lines: [text], versus?: [text], bars?, table?, note?, needs?}
 * bars: [{name, role, values}] over the same dimensions, in order. table: {name, head, rows: () => [[text]]}, made on demand.
 * needs: the name of a parameter matrix that is not here yet.
 */
export function explain(run, parameters, tensor, row, column) {
  const matrix = run.lesson.matrices[tensor];
  const value = run.tensors[tensor].at(row, column);
  const base = { title: titleOf(run, matrix, row, column), result: print(value), lines: [], note: "" };
  if (run.edit(tensor, row, column)) {
    return { ...base, lines: [`You set this number to ${base.result.text}.`], note: "Everything after it follows from it." };
  }
  return { ...base, ...RULES[matrix.rule]({ run, parameters, matrix, row, column, value, result: base.result }) };
}

/** Where a cell is, in words: "query cat₂, key sat". */
export function titleOf(run, matrix, row, column) {
  const place = (axis, index) => (axis === "dimension" ? `number ${index + 1}` : `${axis} ${run.names[index]}`);
  return `${place(matrix.rows, row)}, ${place(matrix.columns, column)}`;
}

const RULES = {
  given: () => ({ lines: ["This number is given: the head starts from it."] }),

  add({ run, matrix, row, column, result }) {
    const parts = matrix.operands.map((name) => print(run.tensors[name].at(row, column)));
    const names = matrix.operands.map((name) => run.lesson.matrices[name].title);
    if (parts.length < 2) return { lines: [`${names[0]} = ${result.text}`] };
    const sum = parts.reduce((total, part) => total + part.value, 0);
    return { lines: [names.join(" + "), `= ${join(parts)}`, `${relation(sum, result)} ${result.text}`] };
  },

  norm({ run, parameters, row, column, result }) {
    const r = run.tensors.r.row(row);
    const { norm_gain: gain, norm_bias: bias, norm_epsilon: epsilon } = parameters;
    if (!gain) return { needs: "norm_gain" };
    const mean = r.reduce((a, b) => a + b, 0) / r.length;
    const variance = r.reduce((a, b) => a + (b - mean) ** 2, 0) / r.length;
    const [number, average, spread] = [r[column], mean, Math.sqrt(variance + epsilon.at(0, 0))].map((n) => print(n));
    const [g, b] = [gain.at(0, column), bias.at(0, column)].map((n) => print(n));
    const computed = ((number.value - average.value) / spread.value) * g.value + b.value;
    return {
      lines: [
        "(r − mean of the row) / spread of the row × gain + bias",
        `= (${number.text} − ${operand(average)}) / ${spread.text} × ${operand(g)} + ${operand(b)}`,
        `${relation(computed, result)} ${result.text}`,
      ],
      note: "Layer norm: every row gets mean 0 and spread 1, then each number its learned gain and bias.",
    };
  },

  project({ run, parameters, matrix, row, column, result }) {
    const weights = matrix.operands[1];
    const W = parameters[weights];
    if (!W) return { needs: weights };
    const bias = parameters[`${weights}_bias`];
    return sumOfProducts(
      { name: `x of ${run.names[row]}`, role: "", values: run.tensors.x.row(row) },
      { name: `row ${column + 1} of ${weights}`, role: matrix.role, values: W.row(column) },
      result,
      `${matrix.symbol} = x · ${weights}ᵀ`,
      null,
      bias ? bias.at(0, column) : null,
    );
  },

  dot({ run, row, column, result }) {
    const told = sumOfProducts(
      { name: `q of ${run.names[row]}`, role: "query", values: run.tensors.q.row(row) },
      { name: `k of ${run.names[column]}`, role: "key", values: run.tensors.k.row(column) },
      result,
      "score = q · k",
    );
    return { ...told, versus: versus(run, row, column, result) };
  },

  scale({ run, row, column, result }) {
    const score = print(run.tensors.scores.at(row, column));
    if (!run.settings.scale) return { lines: [`= ${result.text}`], note: "Scaling is off." };
    const d = run.tensors.q.columns;
    const root = print(Math.sqrt(d));
    return {
      lines: [
        `score / √${d}`,
        `${relation(Math.sqrt(d), root)} ${score.text} / ${root.text}`,
        `${relation(score.value / root.value, result)} ${result.text}`,
      ],
    };
  },

  mask({ run, row, column, result }) {
    const why = hiddenBecause(run, row, column);
    const [query, key] = [run.names[row], run.names[column]];
    if (result.value === -Infinity) {
      const reason =
        why === "padding" ? `${key} is padding, no part of the sentence` : `${key} comes after ${query}: it lies in the future`;
      return { lines: [`${reason}.`, `So the number becomes ${result.text}, and its weight exactly 0.`] };
    }
    const note =
      why === "future" ? `${key} comes after ${query}, but this mask does not act before the softmax.`
      : row === column ? "A token may always look at itself."
      : row < column ? "No causal mask: the future is visible."
      : `${key} comes before ${query}, so ${query} may look at it.`;
    return { lines: [`scaled score, unchanged`, `= ${result.text}`], note };
  },

  softmax({ run, row, column, result, value }) {
    const masked = run.tensors.masked.row(row);
    const number = masked[column];
    if (number === -Infinity) {
      const all = masked.every((n) => n === -Infinity);
      const note = all ? `${run.names[row]} may look nowhere, so every weight of its row is 0.` : "";
      return { lines: [`e^(−∞) = 0`, `so the weight = 0`], note };
    }
    const best = masked.reduce((a, b) => Math.max(a, b), -Infinity);
    const total = masked.reduce((sum, n) => sum + Math.exp(n - best), 0);
    const [own, top] = [print(number), print(best)];
    const gap = print(number - best);
    const power = print(Math.exp(number - best));
    const sum = print(total);
    const share = Math.exp(number - best) / total;
    const steps = afterSoftmax(run, row, column, share);
    const soft = steps.length ? print(share) : result;
    const lines = [
      `gap to the row's best: ${own.text} − ${operand(top)} ${relation(own.value - top.value, gap)} ${gap.text}`,
      `e^(${gap.text}) ${relation(Math.exp(gap.value), power)} ${power.text}`,
      `divided by the row's sum: ${power.text} / ${sum.text} ${relation(power.value / sum.value, soft)} ${soft.text}`,
      ...steps.map(({ text, printed, computed }, i) => {
        const shown = i === steps.length - 1 ? print(value) : printed;
        return `${text} ${relation(computed, shown)} ${shown.text}`;
      }),
    ];
    const table = {
      name: `The whole row of ${run.names[row]}`,
      head: ["key", "masked", "gap", "e^gap", "share"],
      rows: () => [
        ...Array.from(masked, (n, i) => [
          run.names[i],
          ...[n, n - best, Math.exp(n - best), Math.exp(n - best) / total].map((x) => print(x).text),
        ]),
        ["sum", "", "", sum.text, print(1).text],
      ],
    };
    return { lines, table, note: "Subtracting the row's best changes no weight: it cancels in the division." };
  },

  weighted_sum({ run, row, column, result }) {
    return sumOfProducts(
      { name: `weights of ${run.names[row]}`, role: "query", values: run.tensors.weights.row(row) },
      { name: `number ${column + 1} of every v`, role: "value", values: run.tensors.v.column(column) },
      result,
      "context = weights · v",
      run.names,
    );
  },
};

/** Why this key and not that one: against the best other key that the query may look at. q · k₁ − q · k₂ = q · (k₁ − k₂). */
function versus(run, row, column, result) {
  const scores = run.tensors.scores.row(row);
  const others = [...scores.keys()].filter((i) => i !== column && hiddenBecause(run, row, i) === null);
  if (!others.length || hiddenBecause(run, row, column) !== null) return null;
  const other = others.reduce((best, i) => (scores[i] > scores[best] ? i : best));
  const [mine, its] = [run.tensors.k.row(column), run.tensors.k.row(other)];
  const parts = Array.from(run.tensors.q.row(row), (value, i) => value * (mine[i] - its[i]));
  const favour = parts.filter((part) => part > 0).length;
  const second = print(scores[other]);
  const gap = print(scores[column] - scores[other]);
  const names = [run.names[column], run.names[other]];
  return [
    `Why ${names[0]} and not ${names[1]}? q · (k of ${names[0]} − k of ${names[1]})`,
    `= ${result.text} − ${operand(second)} ${relation(result.value - second.value, gap)} ${gap.text}`,
    `${favour} of ${parts.length} numbers speak for ${names[0]}.`,
  ];
}

/** What follows the softmax under the other masks and with dropout: [{text, printed, computed}] */
function afterSoftmax(run, row, column, share) {
  const steps = [];
  let value = share;
  const { mask, dropout } = run.settings;
  if (mask === "after" || mask === "after_renormalised") {
    const seen = run.visible(row, column);
    const before = print(value);
    value = seen ? value : 0;
    const text = seen ? `not in the future, so × 1: ${before.text} × 1` : `in the future, so × 0: ${before.text} × 0`;
    steps.push({ text, printed: print(value), computed: seen ? before.value : 0 });
    if (mask === "after_renormalised") {
      const left = leftAfterMask(run, row);
      const [part, whole] = [print(value), print(left)];
      value = left ? value / left : 0;
      steps.push({
        text: `divided by what is left of the row: ${part.text} / ${whole.text}`,
        printed: print(value),
        computed: whole.value ? part.value / whole.value : 0,
      });
    }
  }
  if (run.kept) {
    const kept = run.kept(row, column);
    const [before, keep] = [print(value), print(1 - dropout)];
    value = kept ? value / (1 - dropout) : 0;
    const text = kept ? `kept by dropout: ${before.text} / ${keep.text}` : `struck out by dropout: ${before.text} × 0`;
    steps.push({ text, printed: print(value), computed: kept ? before.value / keep.value : 0 });
  }
  return steps;
}

function leftAfterMask(run, row) {
  const masked = run.tensors.masked.row(row);
  const best = masked.reduce((a, b) => Math.max(a, b), -Infinity);
  let [all, seen] = [0, 0];
  masked.forEach((n, column) => {
    all += Math.exp(n - best);
    if (run.visible(row, column)) seen += Math.exp(n - best);
  });
  return seen / all;
}

/** A guess taken apart: its logit as a sum of products, its probability by the gap to the best logit. */
export function explainGuess(run, index) {
  const { labels, probabilities, logits, best_logit, exp_sum } = run.guess;
  const [own, best, sum, share] = [logits[index], best_logit, exp_sum, probabilities[index]].map((n) => print(n));
  const gap = print(logits[index] - best_logit);
  const power = print(Math.exp(logits[index] - best_logit));
  const { output, final } = run.tensors;
  const told = sumOfProducts(
    { name: "the normed sum", role: "", values: final.row(0) },
    { name: `output row of ${labels[index]}`, role: "value", values: output.row(index) },
    own,
    `logit of ${labels[index]} = norm(${finalStream(run)}) · its output row`,
  );
  const lines = [
    ...told.lines,
    `gap to the best logit: ${own.text} − ${operand(best)} ${relation(own.value - best.value, gap)} ${gap.text}`,
    `e^(${gap.text}) ${relation(Math.exp(gap.value), power)} ${power.text}`,
    `divided by the sum over the whole vocabulary: ${power.text} / ${sum.text} ${relation(power.value / sum.value, share)} ${share.text}`,
  ];
  return { ...told, title: `guess ${labels[index]}`, result: share, lines };
}

/** What the norm before the output layer takes: only after the last layer is that the stream with this head's context. */
function finalStream(run) {
  if (run.lesson.path.length > 3 || run.lesson.joint.length) return "the stream after the last layer";
  return run.settings.head_off ? "r" : "r + context";
}

function join(parts) {
  return parts.map((part, i) => operand(part, i === 0)).join(" + ");
}

/** Σ a × b (+ bias): written out where it is short, else bars, words, and a table on demand. */
function sumOfProducts(a, b, result, name, labels = null, bias = null) {
  const n = a.values.length;
  const left = Array.from(a.values, (value) => print(value));
  const right = Array.from(b.values, (value) => print(value));
  const products = left.map((_, i) => print(a.values[i] * b.values[i]));
  const signs = products.map((product, i) => relation(left[i].value * right[i].value, product));
  const offset = bias === null ? [] : [print(bias)];
  const total = [...products, ...offset].reduce((sum, product) => sum + product.value, 0);
  if (n <= INLINE) {
    const factors = left.map((l, i) => `${operand(l, i === 0)} × ${operand(right[i])}`);
    const plusBias = bias === null ? "" : ` + ${operand(offset[0])}`;
    const exact = signs.every((sign) => sign === "=") ? "=" : "≈";
    const lines = [name + (bias === null ? "" : " + bias"), `= ${factors.join(" + ")}${plusBias}`];
    if (n > 1 || bias !== null) lines.push(`${exact} ${join([...products, ...offset])}`);
    lines.push(`${relation(n > 1 || bias !== null ? total : left[0].value * right[0].value, result)} ${result.text}`);
    return { lines };
  }
  let [up, down, ups, downs] = [0, 0, 0, 0];
  for (let i = 0; i < n; i++) {
    const product = a.values[i] * b.values[i];
    if (product > 0) [up, ups] = [up + product, ups + 1];
    if (product < 0) [down, downs] = [down - product, downs + 1];
  }
  const [plus, less] = [print(up), print(down)];
  const computed = plus.value - less.value + (offset[0]?.value ?? 0);
  const line =
    `${ups} positive ${ups === 1 ? "product" : "products"} +${plus.text}, ${downs} negative −${less.text}` +
    (offset.length ? `, bias ${offset[0].text}` : "") +
    `: together ${relation(computed, result)} ${result.text}`;
  let sum = bias ?? 0;
  const values = Array.from(a.values, (value, i) => value * b.values[i]);
  const bars = [
    a,
    b,
    { name: "product", role: "", values },
    { name: `running total → ${result.text}`, role: "", values: values.map((value) => (sum += value)) },
  ];
  const table = {
    name: `All ${n} products`,
    head: [labels ? "key" : "number", a.name, b.name, "product"],
    rows: () => [
      ...products.map((product, i) => [
        labels ? labels[i] : String(i + 1),
        left[i].text,
        `× ${operand(right[i])}`,
        `${signs[i]} ${product.text}`,
      ]),
      ...offset.map((printed) => ["bias", "", "", printed.text]),
      ["sum", "", "", `${relation(total, result)} ${result.text}`],
    ],
  };
  return { lines: [`${name}, ${n} products`, line], bars, table };
}
