// The weights of a head: in the payload where they are few, else fetched once, when a cell that needs them is opened.

import { unpackTensors } from "./payload.js";

export class Weights {
  /** fetch(query) → Promise of packed matrices, or undefined where nobody can be asked. */
  constructor(fetch) {
    this.fetch = fetch;
    this.known = new Map();
  }

  /** The matrices of a run's head that are here. */
  of(run) {
    return { ...run.parameters, ...(this.known.get(run.parameters_of) ?? {}) };
  }

  /** Asks for the rest; `then` is called when they came. A failed attempt may be repeated. */
  async want(run, then) {
    const key = run.parameters_of;
    if (!this.fetch || this.known.has(key)) return;
    this.known.set(key, {});
    try {
      this.known.set(key, unpackTensors(await this.fetch(run.query)));
    } catch {
      this.known.delete(key);
      return;
    }
    then(key);
  }
}
