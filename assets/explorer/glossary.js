// The terms of the field that a step uses, explained in a folded list.

import { h } from "./dom.js";

let unfolded = false; // stays as it is from step to step

/** The list for `terms`, of which `meanings` says what they mean; null where there are none. */
export function glossary(meanings, terms) {
  if (!terms?.length) return null;
  const list = terms.map((term) => [h("dt", {}, h("b", {}, term)), h("dd", { style: { margin: "0 0 6px" } }, meanings[term])]);
  const fold = h("details.ax-table", { open: unfolded }, h("summary", {}, "Words used here"), h("dl.ax-small", { style: { margin: "6px 0 0" } }, list));
  fold.addEventListener("toggle", () => (unfolded = fold.open));
  return fold;
}
