// The terms of the field that a step uses, explained in a folded list.

import { h } from "./dom.js";

let unfolded = false; // stays as it is from step to step

/** The list for `terms`, of which `meanings` says what they mean; null where there are none. */
export function glossary(meanings, terms) {
  if (!terms?.length) return null;
  const list = terms.map((term) => [h("dt", {}, h("b", {}, term)), h("dd", {}, meanings[term])]);
  const fold = h("details.ax-table", { open: unfolded }, h("summary", {}, "Words used here"), h("dl.ax-small.ax-terms", {}, list));
  fold.addEventListener("toggle", () => (unfolded = fold.open));
  return fold;
}
