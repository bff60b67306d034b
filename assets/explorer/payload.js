// The payload as the explorer works with it: matrices over float32 data, masks as questions.
// Nothing is computed here that Python computed already.

export class Matrix {
  /** Row-major float32 data of `rows` × `columns`. */
  constructor(name, rows, columns, data) {
    Object.assign(this, { name, rows, columns, data });
  }
  at(row, column) {
    return this.data[row * this.columns + column];
  }
  row(row) {
    return this.data.subarray(row * this.columns, (row + 1) * this.columns);
  }
  column(column) {
    return Float32Array.from({ length: this.rows }, (_, row) => this.at(row, column));
  }
}

/** A payload of `explorer.py` → a run: the same fields, tensors unpacked, and `visible(row, column)`. */
export function unpack(payload) {
  const run = { ...payload, tensors: unpackTensors(payload.tensors), parameters: unpackTensors(payload.parameters ?? {}) };
  const T = payload.tokens.length;
  const visible = bytes(payload.visible);
  const kept = payload.kept ? bytes(payload.kept) : null;
  const bit = (packed, row, column) => {
    const index = row * T + column;
    return ((packed[index >> 3] >> (7 - (index & 7))) & 1) === 1;
  };
  run.visible = (row, column) => bit(visible, row, column);
  run.kept = kept ? (row, column) => bit(kept, row, column) : null;
  if (payload.overview) run.overview = { ...payload.overview, pixels: bytes(payload.overview.pictures) };
  run.steps = Object.fromEntries(payload.lesson.steps.map((step) => [step.name, step]));
  run.edit = (tensor, row, column) =>
    payload.settings.edits.find(([name, r, c]) => name === tensor && r === row && c === column);
  return run;
}

/** {name: {shape, data: base64 float32}} → {name: Matrix}; {shape, like, hidden} is another one with −∞ at the bits. */
export function unpackTensors(packed) {
  const found = {};
  const entries = Object.entries(packed);
  for (const [name, { shape, data }] of entries) {
    if (data) found[name] = new Matrix(name, shape[0], shape[1], new Float32Array(bytes(data).buffer, 0, shape[0] * shape[1]));
  }
  for (const [name, { shape, like, hidden }] of entries) {
    if (!like) continue;
    const bits = bytes(hidden);
    const values = found[like].data.slice();
    for (let i = 0; i < values.length; i++) if ((bits[i >> 3] >> (7 - (i & 7))) & 1) values[i] = -Infinity;
    found[name] = new Matrix(name, shape[0], shape[1], values);
  }
  return found;
}

function bytes(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64);
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

/** Why a cell of the scores takes no part: "future", "padding", or null where it does. */
export function hiddenBecause(run, row, column) {
  if (!run.tokens[column].real) return "padding";
  return run.visible(row, column) ? null : "future";
}
