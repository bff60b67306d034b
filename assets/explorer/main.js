// The explorer: one payload in, an interactive lesson out. It knows its host only by a few functions.
//
// mount(place, host, root) → {show(value)}
//   place  the element that the explorer is built in
//   root   the element that carries data-painted and data-request; `place` itself where none is given
//   host   {ask(settings, otherSentence): the visitor wants another run, parameters(query): Promise of packed weights,
//           address(query, own) → URL to share, remember(query, own): the address bar may follow}; each may be missing

import { arithmeticPart, differencePart, lessonPart } from "./panel.js";
import { chips } from "./chips.js";
import { look } from "./colour.js";
import { Comparison } from "./comparison.js";
import { keepFocus, once, put } from "./dom.js";
import { cellOf, move, selectCell, sources, START, suggestion, withIn } from "./focus.js";
import { frame, tokenTable } from "./frame.js";
import { guessPart } from "./guess.js";
import { follow, noted } from "./motion.js";
import { overviewPart } from "./overview.js";
import { unpack } from "./payload.js";
import { plane } from "./plane.js";
import { quiz } from "./quiz.js";
import { addressQuery, copyLink, ownNames } from "./share.js";
import { bringIntoView, stage } from "./stage.js";
import { tableOf } from "./table.js";
import { markStep, topPart } from "./top.js";
import { Weights } from "./weights.js";
import { whatIf } from "./whatif.js";

export function mount(place, host = {}, root = place) {
  const part = frame((by) => state.tensor && onKey(state.tensor, by));
  place.replaceChildren(part.all);
  const weights = new Weights(host.parameters);
  // run: on screen. step, tensor: what is open. pinned, hover: the chosen and the pointed-at cell. guess: the chosen guess.
  // drawing: what the stage gave. next: where to look once an answer comes. wanted: settings asked for and not answered yet.
  const state = { run: null, step: "weights", tensor: null, pinned: null, hover: null, guess: 0, drawing: null };
  const ask = host.ask ? wish : null;
  const puzzle = quiz(part, () => {
    state.pinned = suggestion(state.run);
    open("weights");
  });
  const comparison = new Comparison(paint);
  let painted = 0;

  const theme = () => (document.body.classList.contains("dark") || root.dataset.theme === "dark" ? "dark" : "light");
  // What the browser would have to lay the page out for is asked once: sizes until the window changes, colours until the theme does.
  let room = null;
  const looks = {};
  const stageRoom = () => (room ??= { width: part.stage.clientWidth || 690, tall: window.innerHeight, font: looked().font });
  const looked = () => (looks[theme()] ??= look(theme(), part.all));
  /** The run that headline, guess and chips tell of: the one on screen, or while A is looked at, A. */
  const shown = () => (comparison.mode === "A" ? comparison.kept : state.run);
  const selection = () => withIn(state.pinned ?? suggestion(shown()), shown());
  const declared = (tensor) => state.run.lesson.matrices[tensor];
  const shape = (tensor) => drawn().tensors[tensor];

  /** A value from the host: a payload to paint, with {message} to say; {message} alone leaves what is there. */
  function show(value) {
    const below = state.run && !value.tensors ? " What you see below is the run before." : "";
    part.message.textContent = value.message ? value.message + below : "";
    part.message.hidden = !value.message;
    if (!value.tensors) {
      state.next = state.wanted = null;
      return;
    }
    if (JSON.stringify(state.wanted) === JSON.stringify(value.settings)) state.wanted = null;
    const before = state.run;
    state.run = unpack(value);
    comparison.follow(state.run);
    state.hover = null;
    state.guess = 0;
    if (value.open?.step) {
      state.step = value.open.step;
      state.tensor = resultOf(state.step);
    }
    if (value.open?.cell) pinFrom(value.open);
    else if (before && before.tokens.length !== state.run.tokens.length) state.pinned = null;
    if (state.next) {
      state.step = state.next.step;
      state.tensor = resultOf(state.step);
      state.pinned = suggestion(state.run, state.next.query);
      state.next = null;
    }
    paint();
    if (!before) part.start.hidden = Boolean(value.open?.step) || state.step === state.run.lesson.steps[0].name;
    painted += 1;
    root.dataset.request = value.query;
    root.dataset.painted = painted;
  }

  function pinFrom({ cell: [row, column], tensor }) {
    const shown = state.run.steps[state.step].shows;
    state.tensor = shown.includes(tensor) ? tensor : resultOf(state.step);
    state.pinned = state.tensor ? selectCell(suggestion(state.run), declared(state.tensor), row, column) : null;
  }

  const resultOf = (step) => state.run.steps[step].shows.at(-1) ?? null;

  /** What is drawn: the run on screen, or while comparing the kept one, or the difference of the two. */
  function drawn() {
    return comparison.drawn(state.run.steps[state.step].shows.includes(state.tensor));
  }

  // --- painting ---

  function paint() {
    const run = shown();
    topPart(part, run, ask, open, () => puzzle.ask(run));
    puzzle.end();
    paintOverview();
    once(part.chips, [run.tokens, run.names], () => (state.chips = chips(part.chips, run, (index) => puzzle.choose(index) || pin({ ...selection(), query: index }))));
    paintStep();
  }

  function paintOverview() {
    overviewPart(part.overview, shown(), theme(), (layer, head) => ask?.({ layer, head, edits: [] }));
  }

  function paintGuesses() {
    guessPart(part.stage, drawn(), selection().query, state.guess, (index) => {
      state.guess = index;
      paintGuesses();
      part.stage.querySelectorAll(".ax-guess-row")[index].focus();
      light();
    });
  }

  function paintStep() {
    if (!state.run.steps[state.step].shows.includes(state.tensor)) state.tensor = resultOf(state.step);
    const run = drawn();
    const step = run.steps[state.step];
    if (ask) comparison.paint(part.compare, part.changed);
    markStep(part, state.step, run.lesson.steps.length);
    lessonPart(part.lesson, run, step);
    const focused = part.stage.contains(document.activeElement) && document.activeElement.dataset.matrix;
    state.drawing = { views: {}, labels: [] };
    if (step.name === "tokens") tokenTable(part.stage, run);
    else if (step.name === "next") paintGuesses();
    else state.drawing = stage(part.stage, run, state.step, stageRoom(), { onPoint, onKey });
    const { views } = state.drawing;
    for (const view of Object.values(views)) view.draw(looked());
    if (focused && views[focused]) views[focused].takeFocus();
    part.panel.style.minHeight = "";
    light();
    bringIntoView(part.stage, views[state.tensor], current()?.row);
  }

  /** Everything that follows the selected cell: outlines, chips, arithmetic. */
  function light() {
    const { views, labels, bars } = state.drawing;
    const run = drawn();
    const at = current();
    if (at && !(at.tensor in run.tensors)) return;
    const rules = at ? sources(declared(at.tensor), at.row, at.column) : {};
    for (const [tensor, view] of Object.entries(views)) {
      view.light(at && tensor === at.tensor ? { row: at.row, cell: [at.row, at.column] } : (rules[tensor] ?? {}));
    }
    const marked = { row: null, column: null };
    if (at) {
      const axes = declared(at.tensor);
      if (axes.rows !== "key") marked.row = at.row;
      if (axes.columns === "key") marked.column = at.column;
    }
    for (const { axis, mark } of labels) mark(marked[axis]);
    const seen = at ? selectCell(selection(), declared(at.tensor), at.row, at.column) : selection();
    state.chips.light(shown(), seen.query);
    if (!state.hover) keepFocus(part.whatIf, () => whatIf(part.whatIf, run, state.step, seen.query, ask));
    bars?.(run.tensors.weights.row(seen.query));
    plane(part.plane, run, state.step, seen.query, seen.key);
    const unfolded = part.table.firstChild?.open ?? false;
    const listed = at && !state.hover ? tableOf(run, at.tensor, at.row, unfolded) : null;
    if (!state.hover) put(part.table, listed);
    const region = part.arithmetic;
    const guessing = state.step === "next" && run.guess ? { guess: state.guess } : null;
    const cell = at ? { tensor: at.tensor, row: at.row, column: at.column } : guessing;
    if (comparison.mode === "D" && at) {
      differencePart(region, run, at, comparison.explain(at));
      return;
    }
    const mayAsk = ask && comparison.mode === "B";
    const fetchWeights = () => weights.want(run, (key) => state.run.parameters_of === key && light());
    arithmeticPart(region, run, weights.of(run), cell, jump, fetchWeights, mayAsk ? edit : null, mayAsk ? lookInto : null);
  }

  /** The cell under discussion: pointed at, or chosen, or suggested. */
  function current() {
    const { views } = state.drawing;
    if (state.hover && state.hover.tensor in views) return { ...state.hover };
    const tensor = state.tensor;
    if (!tensor || !(tensor in views)) return null;
    const { row, column } = cellOf(selection(), declared(tensor), shape(tensor));
    return { tensor, row, column };
  }

  // --- moving about ---

  function open(step) {
    state.tensor = resultOf(step);
    goTo(step);
  }

  function goTo(step) {
    const before = noted(state.drawing.views);
    state.step = step;
    state.hover = null;
    part.start.hidden = true;
    puzzle.end();
    paintStep();
    follow(before, state.drawing.views);
    remember();
  }

  function onPoint(tensor, row, column, kind) {
    if (kind === "out") state.hover = null;
    else if (kind === "over") {
      const same = state.hover && state.hover.tensor === tensor && state.hover.row === row && state.hover.column === column;
      if (same) return;
      state.hover = { tensor, row, column };
      // The panel may grow while one looks around, not shrink: else the page moves under the pointer.
      part.panel.style.minHeight = `${part.panel.offsetHeight}px`;
    } else {
      state.hover = null;
      state.tensor = tensor;
      pin(selectCell(selection(), declared(tensor), row, column));
      const view = state.drawing.views[tensor];
      part.sheet.touched(view.host.getBoundingClientRect().top + ((view.transposed ? column : row) + 1) * view.height);
      return;
    }
    light();
  }

  function onKey(tensor, by) {
    const from = cellOf(state.pinned ?? START, declared(tensor), shape(tensor));
    const { row, column } = move(from, by, shape(tensor));
    state.hover = null;
    state.tensor = tensor;
    pin(selectCell(state.pinned ?? START, declared(tensor), row, column));
  }

  function pin(selected) {
    state.pinned = selected;
    if (state.step === "next") paintGuesses();
    light();
    remember();
  }

  /** Follow the chain: the step that shows `tensor` as its result, at the same pinned cell. */
  function jump(tensor, row, column) {
    state.pinned = selectCell(selection(), declared(state.tensor), row, column);
    const names = state.run.lesson.steps.map((step) => step.name);
    const shows = (name) => state.run.steps[name].shows.includes(tensor);
    const exact = names.find((name) => resultOf(name) === tensor);
    state.tensor = tensor;
    goTo(exact ?? names.find(shows) ?? (tensor in state.run.tensors ? "x" : state.step));
  }

  /** What did the other layer do at this token? Its head, at the row of that token. */
  function lookInto(layer, row) {
    state.next = { step: "weights", query: row };
    ask({ layer, edits: [] });
  }

  // --- talking to the host ---

  /** Changes to the run that is looked at, and to what was wished since, as long as no answer came. */
  function wish(changes) {
    state.wanted = { ...(state.wanted ?? shown().settings), ...changes };
    host.ask(state.wanted, "sentence" in changes);
  }

  function edit(tensor, row, column, value) {
    state.pinned = selectCell(selection(), declared(tensor), row, column);
    const others = state.run.settings.edits.filter(([t, r, c]) => !(t === tensor && r === row && c === column));
    ask({ edits: value === null ? others : [...others, [tensor, row, column, value]] });
  }

  function query() {
    return addressQuery(state.run, state.step, state.pinned && current(), resultOf(state.step));
  }

  function remember() {
    host.remember?.(query(), ownNames(state.run));
  }

  function walk(by) {
    const names = state.run.lesson.steps.map((step) => step.name);
    open(names[names.indexOf(state.step) + by]);
    if (part.rail.getBoundingClientRect().top < 0) part.rail.scrollIntoView();
  }

  part.back.addEventListener("click", () => walk(-1));
  part.next.addEventListener("click", () => walk(1));
  part.start.addEventListener("click", () => open(state.run.lesson.steps[0].name));
  part.link.hidden = !host.address;
  part.link.addEventListener("click", () => copyLink(part, host.address(query(), ownNames(state.run))));
  new ResizeObserver(() => {
    const { width, tall } = stageRoom();
    room = null;
    if (state.run && (stageRoom().width !== width || room.tall !== tall)) paintStep();
  }).observe(part.left);
  new MutationObserver(() => state.run && (paintOverview(), paintStep())).observe(document.body, { attributeFilter: ["class"] });

  return { show };
}
