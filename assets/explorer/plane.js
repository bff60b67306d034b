// Where vectors have two numbers they are places on a plane: q and k as arrows, v and the context as points.

import { h, put, svg } from "./dom.js";

const SIZE = 260;
const EDGE = 34;

/** Draws into `host` for the steps that have something to show; empties it elsewhere. */
export function plane(host, run, step, query, key) {
  const two = run.tensors.q.columns === 2;
  const draw = two && { scores: arrows, context: points }[step];
  put(host, draw ? draw(run, query, key) : null);
}

/** A function from a pair of numbers to a place in the picture; both axes have one scale, the vectors fill the view. */
function scale(vectors) {
  const range = (axis) => {
    const values = vectors.map((vector) => vector[axis]);
    return [Math.min(...values), Math.max(...values)];
  };
  const [[left, right], [low, high]] = [range(0), range(1)];
  const unit = (SIZE - 2 * EDGE) / (Math.max(right - left, high - low) || 1);
  const middle = SIZE / 2;
  return ([a, b]) => [middle + (a - (left + right) / 2) * unit, middle - (b - (low + high) / 2) * unit];
}

const pairs = (matrix) => Array.from({ length: matrix.rows }, (_, i) => Array.from(matrix.row(i)));

function picture(title, to, ...shapes) {
  const [x, y] = to([0, 0]);
  const axis = (x1, y1, x2, y2) => svg("line", { x1, y1, x2, y2, class: "ax-plane-axis" });
  return h(
    "figure.ax-plane",
    {},
    svg(
      "svg",
      { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img", "aria-label": title },
      axis(0, y, SIZE, y),
      axis(x, 0, x, SIZE),
      shapes,
    ),
    h("figcaption.ax-small", {}, title),
  );
}

function label([x, y], text, role) {
  return svg("text", { x: x + 6, y: y - 6, class: `ax-plane-label ax-hue-${role}` }, text);
}

/** The chosen query, and every key: the score is how far the key reaches along the query, times the query's length. */
function arrows(run, query, key) {
  const q = Array.from(run.tensors.q.row(query));
  const keys = pairs(run.tensors.k);
  const to = scale([[0, 0], q, ...keys]);
  const [x0, y0] = to([0, 0]);
  const arrow = (vector, role, strong) => {
    const [x, y] = to(vector);
    const angle = Math.atan2(y - y0, x - x0);
    const wing = (turn) => `${x - 8 * Math.cos(angle + turn)},${y - 8 * Math.sin(angle + turn)}`;
    return svg(
      "g",
      { class: `ax-hue-${role}`, opacity: strong ? 1 : 0.35 },
      svg("line", { x1: x0, y1: y0, x2: x, y2: y, "stroke-width": strong ? 3 : 1.5, stroke: "currentColor" }),
      svg("polygon", { points: `${x},${y} ${wing(0.4)} ${wing(-0.4)}`, fill: "currentColor" }),
    );
  };
  const title = `The query of ${run.names[query]} and all keys: a key scores high where it points along the query.`;
  return picture(
    title,
    to,
    keys.map((vector, i) => arrow(vector, "key", i === key)),
    arrow(q, "query", true),
    label(to(keys[key]), `k ${run.names[key]}`, "key"),
    label(to(q), `q ${run.names[query]}`, "query"),
  );
}

/** The values, as large as their weights, and the context among those that the query sees. */
function points(run, query) {
  const values = pairs(run.tensors.v);
  const context = Array.from(run.tensors.context.row(query));
  const weights = run.tensors.weights.row(query);
  const to = scale([context, ...values]);
  const dots = values.map((vector, i) => {
    const [cx, cy] = to(vector);
    const seen = weights[i] !== 0;
    const dot = { cx, cy, r: 3 + 9 * Math.sqrt(Math.min(1, Math.abs(weights[i]))), opacity: seen ? 0.75 : 0.25 };
    return [svg("circle", { ...dot, fill: "currentColor", class: "ax-hue-value" }), seen ? label([cx, cy], run.names[i], "value") : null];
  });
  const [x, y] = to(context);
  const title = `Every value as a point, as large as its weight. The context of ${run.names[query]} (◆) lies among those it looks at.`;
  return picture(title, to, dots, svg("path", { d: `M ${x} ${y - 9} l 9 9 l -9 9 l -9 -9 z`, class: "ax-plane-context" }));
}
