// The sentence as chips, and arcs from the selected query to the keys it looks at, as thick as the weights.

import { h, svg } from "./dom.js";
import { percent } from "./numbers.js";

const MOST_ARCS = 40; // beyond so many tokens the tint of the chips says enough

const MOST_SHARES = 256; // beyond so many the tint alone, without a number on every chip

/** Draws into `host`. onChoose(index) is called for a chip. Returns {light(run, query)} for runs of the same tokens. */
export function chips(host, run, onChoose) {
  const shares = run.tokens.length > MOST_SHARES ? [] : run.tokens.map(() => h("span.ax-chip-share"));
  const boxes = run.tokens.map((token, index) =>
    h(
      "button.ax-chip",
      {
        type: "button",
        "data-token": index,
        "data-text": token.text,
        title: `${token.label} · token ${token.id < 0 ? "padding" : token.id}`,
        onclick: () => onChoose(index),
      },
      h("span.ax-unseen", {}, `token ${index + 1}: `),
      h("span.ax-chip-name", { dir: "auto" }, run.names[index]),
      token.spoken === run.names[index] ? null : h("span.ax-unseen", {}, `, ${token.spoken}, `),
      shares[index],
    ),
  );
  for (const [i, token] of run.tokens.entries()) if (!token.real) boxes[i].classList.add("ax-padding");
  const arcs = svg("svg", { class: "ax-arcs", "aria-hidden": "true" });
  const row = h("div.ax-chips", { role: "group", "aria-label": "tokens" }, boxes);
  const sentence = h("div.ax-sentence", {}, arcs, row);
  host.replaceChildren(sentence);

  function light(run, query) {
    const weights = run.tensors.weights.row(query);
    sentence.classList.toggle("ax-off", run.settings.head_off);
    boxes.forEach((box, i) => {
      box.setAttribute("aria-pressed", String(i === query));
      box.style.setProperty("--share", Math.min(1, Math.max(0, weights[i])).toFixed(3));
    });
    shares.forEach((share, i) => (share.textContent = weights[i] ? percent(weights[i]) : ""));
    intoView(row, boxes[query]);
    drawArcs(arcs, row, boxes, weights, query);
  }
  return { light };
}

/** Scrolls the sentence so that a token of it can be seen; the page stays where it is. */
function intoView(row, box) {
  const [top, bottom] = [box.offsetTop, box.offsetTop + box.offsetHeight];
  if (top < row.scrollTop) row.scrollTop = top;
  else if (bottom > row.scrollTop + row.clientHeight) row.scrollTop = bottom - row.clientHeight;
}

function drawArcs(arcs, row, boxes, weights, query) {
  // All that is read of the layout is read before anything is written: else every arc would lay the page out again.
  const oneLine = boxes.length > 1 && boxes.length <= MOST_ARCS && boxes[0].offsetTop === boxes.at(-1).offsetTop;
  const middles = oneLine ? boxes.map((box) => box.offsetLeft + box.offsetWidth / 2) : [];
  const [start, width] = oneLine ? [row.offsetLeft, row.offsetWidth] : [0, 0];
  const height = oneLine ? 40 : 0;
  arcs.replaceChildren();
  arcs.setAttribute("height", height);
  arcs.setAttribute("width", width);
  if (!oneLine) return;
  const to = middles[query] - start;
  middles.forEach((middle, i) => {
    if (weights[i] < 0.01) return;
    const from = middle - start;
    const thick = 1 + 7 * Math.min(1, weights[i]);
    const strength = (0.25 + 0.75 * Math.min(1, weights[i])).toFixed(2);
    const bow = Math.min(height - 8, 12 + Math.abs(to - from) * 0.16);
    const shape =
      i === query
        ? `M ${to - 9} ${height} C ${to - 16} ${height - 24}, ${to + 16} ${height - 24}, ${to + 9} ${height}`
        : `M ${to} ${height} C ${to} ${height - bow * 1.3}, ${from} ${height - bow * 1.3}, ${from} ${height}`;
    arcs.append(svg("path", { d: shape, "stroke-width": thick.toFixed(1), opacity: strength, class: "ax-arc" }));
  });
}
