// A matrix as a table: for screen readers, for copying, and for whoever prefers numbers to colours.

import { h } from "./dom.js";
import { print } from "./numbers.js";

const MOST = 1024; // cells: of a larger matrix only the selected row is listed

/** A folded table of `tensor`, filled when it is opened; `row` is the selected one. */
export function tableOf(run, tensor, row, open) {
  const declared = run.lesson.matrices[tensor];
  const matrix = run.tensors[tensor];
  const whole = matrix.rows * matrix.columns <= MOST;
  const head = (axis, i) => (axis === "dimension" ? String(i + 1) : run.names[i]);
  const title = whole ? `${declared.title} as a table` : `${declared.title} as a table: the row of ${head(declared.rows, row)}`;
  const rows = whole ? [...Array(matrix.rows).keys()] : [row];
  const place = h("div.ax-table-scroll", { tabindex: 0, role: "region", "aria-label": title });
  const fold = h("details.ax-table", { open }, h("summary", {}, title), place);
  const fill = () => {
    if (!fold.open || place.childElementCount) return;
    const columns = [...Array(matrix.columns).keys()];
    const line = (i) =>
      h(
        "tr",
        {},
        h("th", { scope: "row", dir: "auto" }, head(declared.rows, i)),
        columns.map((j) => h("td", { dir: "ltr" }, print(matrix.at(i, j)).text)),
      );
    place.append(
      h(
        "table",
        {},
        h("caption.ax-unseen", {}, title),
        h("thead", {}, h("tr", {}, h("td"), columns.map((j) => h("th", { scope: "col", dir: "auto" }, head(declared.columns, j))))),
        h("tbody", {}, rows.map(line)),
      ),
    );
  };
  fold.addEventListener("toggle", fill);
  fill();
  return fold;
}
