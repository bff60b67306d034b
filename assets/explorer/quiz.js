// "Why sat?": where would you look? What gives it away is out of sight until a token is chosen or the question is given up.

import { h, put } from "./dom.js";
import { suggestion } from "./focus.js";
import { percent } from "./numbers.js";

/** The question of one mount. onReveal() shows the place that it is about. Returns {ask(run), choose(index), end()}. */
export function quiz(part, onReveal) {
  let asked = null; // the run in question

  function ask(run) {
    asked = run;
    const name = run.names[suggestion(run).query];
    const skip = h("button.ax-jump", { type: "button", onclick: () => answer("") }, run.lesson.quiz.skip);
    put(part.question, h("span", {}, fill(run.lesson.quiz.question, { query: name })), skip);
    show(true);
  }

  /** A token was chosen; false where nothing was asked. */
  function choose(index) {
    if (!asked) return false;
    answer(verdict(asked, index)); // which ends the question
    return true;
  }

  function answer(told) {
    onReveal();
    part.question.textContent = told;
    part.question.hidden = !told;
  }

  function end() {
    asked = null;
    show(false);
  }

  function show(yes) {
    part.question.hidden = !yes;
    part.all.classList.toggle("ax-asked", yes);
    part.main.inert = yes;
  }

  return { ask, choose, end };
}

/** One sentence: what the head gives the chosen token, and where it looks most. */
function verdict(run, chosen) {
  const { query, key } = suggestion(run);
  const shares = run.tensors.weights.row(query);
  const words = { chosen: run.names[chosen], key: run.names[key], own: percent(shares[chosen]), most: percent(shares[key]) };
  return fill(chosen === key ? run.lesson.quiz.same : run.lesson.quiz.other, words);
}

/** The template's {names} replaced by words. */
export const fill = (template, words) => template.replace(/\{(\w+)\}/g, (_, name) => words[name]);
