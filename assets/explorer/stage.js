// The stage: the matrices of one step, operands and result laid out like a multiplication on paper.
// Every drawn matrix is a MatrixView; the labels around them are text, thinned where they would not fit.

import { bars } from "./bars.js";
import { h, svg } from "./dom.js";
import { MatrixView } from "./matrix.js";
import { columnLabels, rowLabels, textWidth } from "./labels.js";
import { gutter, stageSizes } from "./layout.js";
import { hiddenBecause } from "./payload.js";
import { print } from "./numbers.js";

const GROWS = 32; // tokens: up to so many the stage is as tall as it needs, beyond it scrolls
const HUE = { query: "--ax-query", key: "--ax-key", value: "--ax-value", "": "--ax-cell" };

/** Fills `host`. room: {width, tall} in pixels and the font. Returns {views: {tensor: MatrixView}, labels, bars(shares)} */
export function stage(host, run, step, room, events) {
  const measure = (text) => textWidth(text, room.font);
  const label = gutter(run.names, room.width, measure);
  const shape = { T: run.tokens.length, d_in: run.tensors.x.columns, d_out: run.tensors.q.columns, label, stacked: stackOf(run).length, ...room };
  const build = { run, step, label, shape, sizes: stageSizes(step, shape), events, measure, views: {}, labels: [], bars: () => {} };
  const layout = { qk: asking, scores: square, scaled: square, masked: square, weights: square, context: blending }[step];
  const body = (layout ?? embedding)(build);
  host.replaceChildren(h(`div.ax-scroll${run.tokens.length > GROWS ? ".ax-bounded" : ""}`, { tabindex: -1 }, body));
  return build;
}

/** One view, registered under its tensor's name. */
function view(build, tensor, { width, height, transposed = false, faint = false, still = false }) {
  const { run, events } = build;
  const declared = run.lesson.matrices[tensor];
  const matrix = run.tensors[tensor] ?? run.parameters[tensor];
  const square = declared.rows === "query" && declared.columns === "key";
  const afterHidden = tensor === "weights" || tensor === "masked";
  const made = new MatrixView({
    tensor,
    matrix,
    width,
    height,
    transposed,
    still,
    unit: declared.unit,
    small: run.tokens.length > GROWS, // shares of many are small: else the picture would be white
    hue: HUE[declared.role],
    digits: faint ? null : run.digits,
    label: `${declared.title}: ${matrix.rows} × ${matrix.columns}. Arrow keys move from cell to cell.`,
    hidden: (row, column) => {
      if (square && afterHidden) {
        const why = hiddenBecause(run, row, column);
        const number = matrix.at(row, column);
        return why && (number === -Infinity || number === 0) ? why : null;
      }
      return null;
    },
    onPoint: (row, column, kind) => events.onPoint(tensor, row, column, kind),
    onKey: (by) => events.onKey(tensor, by),
  });
  made.host.classList.toggle("ax-faint", faint);
  build.views[tensor] = made;
  return made;
}

/** The name of a matrix above it, with its shape and its scale. */
function caption(build, tensor, made, text = null) {
  const declared = build.run.lesson.matrices[tensor];
  const { rows, columns } = made.matrix;
  const size = made.transposed ? `${columns} × ${rows}` : `${rows} × ${columns}`;
  return h(
    "div.ax-caption",
    { style: { color: `var(${made.hue === "--ax-cell" ? "--ax-ink" : made.hue})` } },
    h("b", {}, text ?? declared.symbol),
    h("span", {}, declared.rows === "token" ? ` ${declared.title}, ${size}` : ` ${size}`),
  );
}

function legend(made) {
  if (!made.unit && made.limit === 0) return h("div.ax-legend", { "aria-hidden": "true" }, "0 everywhere");
  const limit = print(made.limit, 2).text;
  const ends = made.unit ? ["0", "1"] : [`−${limit}`, limit];
  return h(
    "div.ax-legend",
    { "aria-hidden": "true" },
    h("span", {}, ends[0]),
    h(`i.${made.unit ? "ax-ramp-unit" : "ax-ramp-signed"}`),
    h("span", {}, ends[1]),
    made.unit && made.small ? h("span", {}, "(half-way 0.125)") : null,
  );
}

/** Labels that are known to `build`, so that the selected row or column can be marked. */
function named(build, labels, area = null) {
  build.labels.push(labels);
  if (area) labels.host.style.gridArea = area;
  return labels.host;
}

const rows = (build, area = null) => named(build, rowLabels(build.run.names, build.sizes.row ?? build.sizes.cell, build.label), area);
const columns = (build) => named(build, columnLabels(build.run.names, build.sizes.cell, build.measure), "columns");

const cell = (area, ...children) => h("div", { style: { gridArea: area } }, children);

/** The T × T steps: q on the left, kᵀ on top, the matrix in the corner; it stays where it is from step to step. */
function square(build) {
  const { run, step, sizes, shape } = build;
  const T = shape.T;
  const made = view(build, step, { width: sizes.cell, height: sizes.cell });
  const summed = step === "weights" && made.unit && sizes.sums; // a difference of two runs has no sums to show
  const faint = step !== "scores";
  const parts = [];
  const corner = [];
  if (sizes.tile) {
    const q = view(build, "q", { width: sizes.tile / shape.d_out, height: sizes.cell, faint });
    const k = view(build, "k", { width: sizes.cell, height: sizes.tile / shape.d_out, transposed: true, faint });
    parts.push(cell("q", q.host), cell("k", k.host));
    corner.push(caption(build, "k", k, "kᵀ →"), caption(build, "q", q, "q ↓"));
  }
  const bars = h("div.ax-sums", {
    style: { gridArea: "sums", width: `${sizes.sums}px` },
    "aria-hidden": "true",
  });
  if (summed) {
    for (let row = 0; row < T; row++) {
      const total = run.tensors.weights.row(row).reduce((a, b) => a + b, 0);
      bars.append(h("span", { style: { height: `${sizes.cell}px` } }, print(total, 2).text));
    }
  }
  return h(
    `div.ax-paper.ax-square${sizes.narrow ? ".ax-narrow" : ""}`,
    { style: { columnGap: `${sizes.gap}px` } },
    cell("axis-k", h("span.ax-axis", {}, `${run.lesson.axes.key} →`)),
    h("div.ax-corner", { style: { gridArea: "corner" } }, corner, h("span.ax-axis", {}, `${run.lesson.axes.query} ↓`)),
    columns(build),
    cell("axis-sums", summed ? h("span.ax-axis", {}, "sum") : ""),
    rows(build, "rows"),
    ...parts,
    cell("result", made.host),
    bars,
    step === "weights" && made.unit ? rowBars(build) : null,
    cell("foot", h("div.ax-foot", {}, caption(build, step, made), legend(made))),
  );
}

/** Scrolls a large stage so that the chosen row of `view` can be seen. */
export function bringIntoView(host, view, row) {
  if (view?.matrix.rows <= GROWS) return;
  const scroll = host.querySelector(".ax-scroll");
  if (!view || row === undefined || !scroll || scroll.scrollHeight <= scroll.clientHeight) return;
  const top = view.host.offsetTop + row * view.height;
  if (top + view.height > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top - scroll.clientHeight / 2;
}

/** The selected row once more, one bar a key, without colour; `build.bars(shares)` sets it. */
function rowBars(build) {
  const [width, height] = [build.sizes.cell, 26];
  const path = svg("path");
  build.bars = (shares) => {
    const tall = (share) => (share > 0 ? Math.max(1, Math.min(1, share) * height) : 0);
    path.setAttribute("d", bars(Array.from(shares, tall), width, height));
  };
  const size = { width: build.shape.T * width, height };
  return h("div.ax-rowbars", { style: { gridArea: "bars" }, "aria-hidden": "true" }, svg("svg", size, path));
}

/** Blend: weights on the left, v on top, the context in the corner. */
function blending(build) {
  const { sizes } = build;
  const weights = view(build, "weights", { width: sizes.cell, height: sizes.row });
  const v = view(build, "v", { width: sizes.column, height: sizes.row });
  const context = view(build, "context", { width: sizes.column, height: sizes.row });
  if (sizes.narrow) {
    return h(
      "div",
      {},
      [weights, v, context].map((made) => block(build, made)),
    );
  }
  return h(
    "div.ax-paper.ax-blend",
    { style: { columnGap: `${sizes.gap}px` } },
    rows(build, "v-rows"),
    cell("v", caption(build, "v", v), v.host),
    rows(build, "rows"),
    cell("weights", weights.host),
    cell("result", context.host),
    columns(build),
    cell("foot-w", h("div.ax-foot", {}, caption(build, "weights", weights), legend(weights))),
    cell("foot", h("div.ax-foot", {}, caption(build, "context", context), legend(context))),
  );
}

/** A matrix by itself with its row labels. */
function block(build, made) {
  return h(
    "div.ax-block",
    {},
    h("div.ax-foot", { style: { paddingLeft: `${build.label}px` } }, caption(build, made.tensor, made), legend(made)),
    h("div.ax-labelled", {}, rows(build), made.host),
  );
}

/** Ask and offer: x on the left, the two weight matrices on top where they are here, and q and k in the corners. */
function asking(build) {
  const { run, sizes, shape } = build;
  const x = view(build, "x", { width: sizes.x, height: sizes.cell });
  const q = view(build, "q", { width: sizes.out, height: sizes.cell });
  const k = view(build, "k", { width: sizes.out, height: sizes.cell });
  if (sizes.narrow) return h("div", {}, [x, q, k].map((made) => block(build, made)));
  const top = ["W_query", "W_key"].map((name) => {
    if (!run.parameters[name]) return [];
    const made = view(build, name, { width: sizes.out, height: sizes.inner, transposed: true, still: true });
    return [caption(build, name, made, `${name}ᵀ`), made.host];
  });
  const under = (made) => h("div.ax-foot", {}, caption(build, made.tensor, made), legend(made));
  return h(
    "div.ax-paper.ax-asking",
    { style: { columnGap: `${sizes.gap}px` }, "data-tokens": shape.T },
    cell("wq", ...top[0]),
    cell("wk", ...top[1]),
    rows(build, "rows"),
    ...[x, q, k].flatMap((made) => [cell(made.tensor, made.host), cell(`foot-${made.tensor}`, under(made))]),
  );
}

/** What x was made from, and x: the order in which they stand below one another. */
function stackOf(run) {
  const { matrices } = run.lesson;
  const direct = matrices.x.operands;
  const names = new Set([...direct.flatMap((name) => matrices[name].operands), ...direct, "x"]);
  return [...names].filter((name) => name in run.tensors);
}

/** Embed: what x was made from, and x. */
function embedding(build) {
  const { run, sizes, shape } = build;
  const shown = stackOf(run);
  return h(
    "div.ax-stack",
    { "data-tokens": shape.T },
    shown.map((name, i) => {
      const made = view(build, name, { width: sizes.x, height: sizes.cell });
      const normed = name === "x" && run.lesson.matrices.x.rule === "norm";
      const sign = i === 0 ? "" : normed ? "→" : name === "x" || name === "r" ? "=" : "+";
      const mark = shown.length > 1 ? h("span.ax-sign", { "aria-hidden": "true" }, sign) : null;
      return h("div.ax-term", {}, mark, block(build, made));
    }),
  );
}
