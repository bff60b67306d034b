// Guess: the context rejoins the stream that went around the head, and the sum becomes probabilities.

import { h } from "./dom.js";
import { operand, percent, print, relation } from "./numbers.js";

const box = (text, role = "") => h(`span.ax-node${role ? `.ax-hue-${role}` : ""}`, {}, text);
const arrow = (text = "→") => h("span.ax-arrow", { "aria-hidden": "true" }, text);

export function guessPart(host, run, query) {
  const last = run.tokens.reduce((at, token, i) => (token.real ? i : at), 0);
  const name = run.names[run.guess ? last : query];
  if (!run.guess) {
    host.replaceChildren(
      h("div.ax-flowline", {}, box(`context of ${name}`), arrow(), box("no output layer", "none")),
      h("p.ax-words", {}, "Choose the trained model to see the context turned into a guess."),
    );
    return;
  }
  const { labels, probabilities, logits, best_logit, exp_sum } = run.guess;
  const off = run.settings.head_off;
  const rows = labels.map((label, i) =>
    h(
      "li",
      {},
      h("span.ax-guess-name", { dir: "auto" }, label),
      h("span.ax-guess-bar", { "aria-hidden": "true" }, h("i", { style: { width: `${(probabilities[i] * 100).toFixed(2)}%` } })),
      h("span.ax-guess-share", {}, percent(probabilities[i])),
    ),
  );
  const [best, own, sum] = [best_logit, logits[0], exp_sum].map((n) => print(n));
  const power = print(Math.exp(logits[0] - best_logit));
  const share = print(probabilities[0]);
  host.replaceChildren(
    h(
      "div.ax-flowline",
      {},
      h(
        "span.ax-fork",
        {},
        h("span", {}, box(`r of ${name}`), arrow("goes around the head →")),
        h(`span${off ? ".ax-struck" : ""}`, {}, box(`context of ${name}`, "value"), arrow(off ? "left out" : "added →")),
      ),
      box("+"),
      run.lesson.path.map((stop) => [arrow(), box(stop)]),
    ),
    h("ol.ax-guesses", {}, rows),
    h(
      "div.ax-lines",
      {},
      h("p", {}, `logit of ${labels[0]}: ${own.text}, the best: ${best.text}`),
      h("p", {}, `e^(${own.text} − ${operand(best)}) ${relation(Math.exp(own.value - best.value), power)} ${power.text}`),
      h("p", {}, `divided by the sum over all tokens: ${power.text} / ${sum.text} ${relation(power.value / sum.value, share)} ${share.text}`),
    ),
  );
}
