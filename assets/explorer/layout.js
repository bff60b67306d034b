// Sizes, in CSS pixels: how large the cells of a step are, so that operands and result line up as on paper. Pure.

export const CELL = { most: 64, usual: 44, side: 288, least: 5, tiny: 3 }; // side: what a small matrix grows to
const GAP = 14;
const TILE = 76; // how long one q or k is drawn beside the T × T matrix
const SUMS = 40;
const LEGIBLE = 13; // rows of text need so much
const SIGN = 30; // what a + or = takes before a matrix
const BLEND = 420; // v above its context: how tall the two may be
const EDGE = 24; // right of all matrices

/** Width of the row labels: long enough for the longest, within bounds. `measure` gives a text's width. */
export function gutter(names, width, measure) {
  const longest = Math.max(24, ...names.map(measure));
  return Math.min(Math.ceil(longest) + 14, width < 500 ? 62 : 110);
}

/** Square cells for T × T beside what else stands in the row. */
export function squareCell(T, room, tall = 720) {
  const least = T > 128 ? CELL.tiny : CELL.least;
  const most = Math.min(CELL.most, Math.max(CELL.usual, Math.floor(Math.max(CELL.side, tall - 500) / T)));
  return Math.max(least, Math.min(most, Math.floor(room / T)));
}

/**
 * Sizes of a step's stage: {cell, columnWidth: {tensor: px}, tile, narrow}.
 * `pair` steps draw q left and kᵀ on top of the T × T matrix; on a narrow screen they do without.
 */
export function stageSizes(step, { T, d_in, d_out, width, label, tall, stacked = 1 }) {
  const narrow = width < 520;
  const room = width - label - 2;
  if (["scores", "scaled", "masked", "weights"].includes(step)) {
    const tile = narrow ? 0 : TILE;
    const besides = narrow ? 0 : tile + 2 * GAP;
    const sums = narrow ? 44 : SUMS + GAP;
    const cell = squareCell(T, room - besides - sums, tall);
    const summed = cell >= LEGIBLE; // where a row's sum has room beside it
    return { narrow, tile, sums: summed ? sums : 0, gap: narrow ? 0 : GAP, cell: summed ? cell : squareCell(T, room - besides, tall) };
  }
  if (step === "context") {
    if (narrow) return { narrow, gap: 0, cell: squareCell(T, room), row: squareCell(T, room), ...columns(d_out, room) };
    const both = room - label - 3 * GAP - EDGE; // v has labels of its own
    const side = Math.max(150, Math.min(44 * d_out, both * 0.5));
    const cell = squareCell(T, both - side, tall);
    const row = Math.max(CELL.least, Math.floor(Math.min(BLEND, Math.max(240, tall - 470)) / (2 * T)));
    return { narrow, gap: GAP, cell, row: Math.min(row, cell), ...columns(d_out, side) };
  }
  if (step === "qk") {
    const most = narrow ? room : (room - 4 * GAP) / (d_in + 2 * d_out);
    const column = (d, side) => columns(d, narrow ? Math.min(side, d * 48) : Math.min(most, 48) * d).column;
    return { narrow, gap: GAP, cell: rowHeight(T, 216), x: column(d_in, room), out: column(d_out, room), inner: Math.min(48, 170 / d_in) };
  }
  const wide = room - SIGN;
  return { narrow, gap: GAP, cell: rowHeight(T, step === "x" ? 390 / stacked - 26 + 40 / stacked : 390), x: columns(d_in, Math.min(wide, d_in * 56)).column };
}

/** Rows of T tokens in about `tall` pixels. */
function rowHeight(T, tall) {
  return Math.max(CELL.least, Math.min(36, Math.floor(tall / T)));
}

/** d columns over `side` pixels: whole pixels where they fit, fractions beyond. */
function columns(d, side) {
  const column = side / d;
  return { column: column >= 2 ? Math.floor(column) : column };
}

/** The cell under a point of a matrix, or null outside. */
export function hit(x, y, { rows, columns: n, width, height }) {
  const row = Math.floor(y / height);
  const column = Math.floor(x / width);
  return row >= 0 && row < rows && column >= 0 && column < n ? { row, column } : null;
}

/** Every how-many-th label can be shown at this spacing. */
export function labelStride(spacing, needed) {
  return Math.max(1, Math.ceil(needed / spacing));
}
