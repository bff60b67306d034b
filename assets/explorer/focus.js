// What is selected: one query, one key, one dimension, kept through all steps. Pure.
// A cell of a matrix names two of the three, by the axes that the lesson declares for the matrix.

const FIELD = { query: "query", token: "query", key: "key", dimension: "dimension" };

/** The cell of a matrix that a selection means. */
export function cellOf(selection, declared, shape) {
  const clamp = (value, count) => Math.max(0, Math.min(count - 1, value));
  return {
    row: clamp(selection[FIELD[declared.rows]], shape.rows),
    column: clamp(selection[FIELD[declared.columns]], shape.columns),
  };
}

/** The selection in a run that may have fewer tokens. */
export function withIn(selection, { tokens }) {
  const [query, key] = [selection.query, selection.key].map((at) => Math.min(at, tokens.length - 1));
  return { ...selection, query, key };
}

/** The selection after a cell of a matrix was chosen. */
export function selectCell(selection, declared, row, column) {
  return { ...selection, [FIELD[declared.rows]]: row, [FIELD[declared.columns]]: column };
}

/** The cell after a key press: a step [rows, columns], "Home", "End", or "here". */
export function move({ row, column }, by, shape) {
  if (by === "Home") return { row, column: 0 };
  if (by === "End") return { row, column: shape.columns - 1 };
  if (by === "here") return { row, column };
  const clamp = (value, count) => Math.max(0, Math.min(count - 1, value));
  return { row: clamp(row + by[0], shape.rows), column: clamp(column + by[1], shape.columns) };
}

/** What to look at before anything was chosen: the last real token (or `query`), and the key it looks at most. */
export function suggestion(run, query = lastReal(run)) {
  const row = run.tensors.weights.row(query);
  const key = row.reduce((best, weight, i) => (weight > row[best] ? i : best), 0);
  return { query, key, dimension: 0 };
}

/** The row that the next word is guessed from. */
export function lastReal(run) {
  return run.tokens.reduce((last, token, i) => (token.real ? i : last), 0);
}

/** START is where the keyboard begins in a matrix that nothing was chosen in. */
export const START = { query: 0, key: 0, dimension: 0 };

/** Which whole rows and columns of an operand the cell (row, column) of `tensor` was made from: {operand: {row, column}}. */
export function sources(declared, row, column) {
  const [first, second] = declared.operands;
  switch (declared.rule) {
    case "dot":
      return { [first]: { row }, [second]: { row: column } };
    case "project":
      return { [first]: { row }, [second]: { row: column } };
    case "weighted_sum":
      return { [first]: { row }, [second]: { column } };
    case "softmax":
      return { [first]: { row, cell: [row, column] } };
    case "norm":
      return { [first]: { row, cell: [row, column] } };
    default:
      return Object.fromEntries(declared.operands.map((name) => [name, { cell: [row, column] }]));
  }
}
