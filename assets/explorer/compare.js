// Two runs side by side: the one that was kept (A), the one on screen (B), and what lies between them. Pure.

import { Matrix } from "./payload.js";
import { operand, percent, print, relation } from "./numbers.js";

/** Whether a number of A and one of B in the same place speak of the same thing: the same tokens in the same order. */
export function comparable(a, b) {
  const key = (run) => JSON.stringify(run.tokens.map((token) => [token.text, token.real]));
  return key(a) === key(b);
}

/** B − A as a run of its own: differences of all tensors of one shape, on signed scales. −∞ − −∞ counts as 0. */
export function difference(a, b) {
  const tensors = {};
  for (const [name, matrix] of Object.entries(b.tensors)) {
    const other = a.tensors[name];
    if (!other || other.rows !== matrix.rows || other.columns !== matrix.columns) continue;
    const data = matrix.data.map((value, i) => (value === other.data[i] ? 0 : value - other.data[i]));
    tensors[name] = new Matrix(name, matrix.rows, matrix.columns, data);
  }
  const matrices = Object.fromEntries(Object.entries(b.lesson.matrices).map(([name, m]) => [name, { ...m, unit: false }]));
  return { ...b, tensors, lesson: { ...b.lesson, matrices } };
}

/** Where a tensor changed most: {row, column, from, to}, null where it did not change or cannot be compared. */
export function largestChange(a, b, tensor) {
  const [from, to] = [a.tensors[tensor], b.tensors[tensor]];
  if (!from || !to || from.rows !== to.rows || from.columns !== to.columns) return null;
  let [at, most] = [-1, 0];
  to.data.forEach((value, i) => {
    const gap = value === from.data[i] ? 0 : Math.abs(value - from.data[i]);
    if (gap > most) [at, most] = [i, gap];
  });
  if (at < 0) return null;
  return { row: Math.floor(at / to.columns), column: at % to.columns, from: from.data[at], to: to.data[at] };
}

/** One sentence: what was changed, and what moved most for it. */
export function whatChanged(a, b) {
  const changed = Object.keys(b.settings).filter((name) => JSON.stringify(a.settings[name]) !== JSON.stringify(b.settings[name]));
  const words = [...new Set(changed.map((name) => b.lesson.settings[name]))];
  if (!words.length) return "A and B are the same run. Change something.";
  const cause = words.length === 1 ? `Only the ${words[0]} changed` : `Changed: ${words.join(", ")}`;
  if (!comparable(a, b)) return `${cause}; the tokens differ, so no number stands beside its own.`;
  const move = largestChange(a, b, "weights");
  const guess = guessMoved(a, b);
  if (!move) return `${cause}; every weight stayed as it was${guess}.`;
  const [from, to] = [print(move.from, 2).text, print(move.to, 2).text];
  return `${cause}; largest move: ${b.names[move.row]} looking at ${b.names[move.column]}, ${from} → ${to}${guess}.`;
}

function guessMoved(a, b) {
  if (!a.guess || !b.guess) return "";
  const [from, to] = [a, b].map(({ guess }) => `${guess.names[0]} ${percent(guess.probabilities[0])}`);
  return from === to ? "" : `; the guess went from ${from} to ${to}`;
}

/** A cell of B − A taken apart. */
export function explainDifference(a, b, tensor, row, column) {
  const [from, to] = [a, b].map((run) => print(run.tensors[tensor].at(row, column)));
  const same = from.value === to.value;
  const result = print(same ? 0 : b.tensors[tensor].at(row, column) - a.tensors[tensor].at(row, column));
  const computed = same ? 0 : to.value - from.value;
  return {
    result,
    lines: ["B − A", `= ${to.text} − ${operand(from)}`, `${relation(computed, result)} ${result.text}`],
  };
}
