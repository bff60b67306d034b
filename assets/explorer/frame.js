// What is always there: the skeleton that runs are painted into, and the table of tokens.

import { h } from "./dom.js";
import { sheet } from "./sheet.js";

/** The tokens as a table: place, label, id and span in the sentence. */
export function tokenTable(host, run) {
  const head = ["position", "token", "id", "characters"];
  const row = (token, i) => [i, token.label, token.id < 0 ? "padding" : token.id, `${token.start}–${token.end}`];
  host.replaceChildren(
    h(
      "div.ax-scroll",
      { tabindex: 0, role: "region", "aria-label": "tokens" },
      h(
        "table.ax-tokens",
        {},
        h("thead", {}, h("tr", {}, head.map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, run.tokens.map((token, i) => h("tr", {}, row(token, i).map((text) => h("td", { dir: "auto" }, text))))),
      ),
    ),
  );
}

/** The fixed skeleton that runs are painted into. onMove([rows, columns]): to a neighbour of the selected cell. */
export function frame(onMove) {
  const part = {
    message: h("p.ax-message", { role: "alert", hidden: true }),
    headline: h("h2.ax-headline", { dir: "auto" }),
    guess: h("div.ax-guess", { hidden: true }),
    model: h("p.ax-model"),
    question: h("p.ax-question", { role: "status", hidden: true }),
    notes: h("ul.ax-notes"),
    chips: h("div.ax-chips-host"),
    overview: h("div.ax-overview", { hidden: true }),
    rail: h("nav.ax-rail", { "aria-label": "steps" }),
    stage: h("div.ax-stage"),
    table: h("div"),
    lesson: h("div.ax-lesson"),
    arithmetic: h("div", { id: "arithmetic", "aria-live": "polite", role: "region", "aria-label": "arithmetic of the selected cell" }),
    plane: h("div"),
    whatIf: h("div.ax-what-if"),
    examples: h("div.ax-examples", { role: "group", "aria-label": "examples" }),
    learn: h("div.ax-learning", { hidden: true }),
    back: h("button.ax-nav", { type: "button" }, "‹ Back"),
    start: h("button.ax-begin", { type: "button", hidden: true }, "start at step 1"),
    next: h("button.ax-nav.ax-primary", { type: "button" }, "Next ›"),
    count: h("span.ax-count"),
    compare: h("span.ax-compare"),
    changed: h("p.ax-changed", { role: "status", hidden: true }),
    link: h("button.ax-nav.ax-quiet", { type: "button" }, "Copy link"),
  };
  part.sheet = sheet(part.arithmetic, onMove);
  part.panel = h("div.ax-panel", {}, part.lesson, part.sheet.host, part.plane, part.whatIf);
  part.row = h("div.ax-row", {}, part.chips, h("div.ax-side", {}, part.examples, part.learn));
  part.left = h("div.ax-left", {}, part.stage, part.table);
  part.main = h("div.ax-main", {}, part.left, part.panel);
  part.all = h(
    "div.ax",
    {},
    part.message,
    h("div.ax-top", {}, h("div.ax-found", {}, part.headline, part.question), part.guess),
    part.notes,
    part.row,
    part.overview,
    h("div.ax-steps", {}, part.rail, h("span.ax-tools", {}, part.compare, part.link)),
    part.changed,
    part.main,
    h("div.ax-bottom", {}, part.back, h("span.ax-where-now", {}, part.count, part.start, part.model), part.next),
  );
  return part;
}
