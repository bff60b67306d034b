// Guess: the context rejoins the stream that went around the head, and the sum becomes probabilities.

import { h } from "./dom.js";
import { lastReal } from "./focus.js";
import { percent } from "./numbers.js";

const box = (text, role = "") => h(`span.ax-node${role ? `.ax-hue-${role}` : ""}`, {}, text);
const arrow = (text = "→") => h("span.ax-arrow", { "aria-hidden": "true" }, text);

/** What else is added before the context reaches the stream, in a model with many heads. */
function joint(run) {
  return (run.lesson.joint ?? []).map((other) => h("span.ax-stop", {}, arrow("with"), box(other)));
}

/** Draws the way to the guess and the guesses; onChoose(index) is called for one of them. */
export function guessPart(host, run, query, chosen, onChoose) {
  if (!run.guess) {
    host.replaceChildren(
      h("div.ax-flowline", {}, box(`context of ${run.names[query]}`), arrow(), box("no output layer")),
      h("p.ax-words", {}, "Choose the trained model to see the context turned into a guess."),
    );
    return;
  }
  const name = run.names[lastReal(run)];
  const { labels, probabilities } = run.guess;
  const off = run.settings.head_off;
  const rows = labels.map((label, i) =>
    h(
      "li",
      {},
      h(
        "button.ax-guess-row",
        { type: "button", "aria-pressed": String(i === chosen), onclick: () => onChoose(i) },
        h("span.ax-guess-name", { dir: "auto" }, label),
        h("span.ax-guess-bar", { "aria-hidden": "true" }, h("i", { style: { width: `${(probabilities[i] * 100).toFixed(2)}%` } })),
        h("span.ax-guess-share", {}, percent(probabilities[i])),
      ),
    ),
  );
  host.replaceChildren(
    h(
      "div.ax-flowline",
      {},
      h(
        "span.ax-fork",
        {},
        h("span", {}, box(`r of ${name}`), arrow("goes around the head →")),
        h(`span${off ? ".ax-struck" : ""}`, {}, box(`context of ${name}`, "value"), joint(run), arrow(off ? "left out" : "added →")),
      ),
      box("+"),
      run.lesson.path.slice(0, -1).map((stop) => h("span.ax-stop", {}, arrow(), box(stop))),
    ),
    h("ol.ax-guesses", {}, rows),
  );
}
