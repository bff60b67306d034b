// Elements without templates: text goes in by textContent only, so a token can never become markup.

/** h("p.note", {id: "x", onclick: f}, "text", child) → element. Null and undefined attributes and children are left out. */
export function h(spec, attributes = {}, ...children) {
  const [tag, ...classes] = spec.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  return fill(element, attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) element.append(child);
  return element;
}

/** Replaces what `host` holds; null and undefined children are left out. */
export function put(host, ...children) {
  host.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
}

const built = new WeakMap();

/** Does `build`, which fills `host`, only where `key` is not what it was last time: what stays the same is not laid out again. */
export function once(host, key, build) {
  const text = JSON.stringify(key);
  if (built.get(host) === text) return;
  build();
  built.set(host, text);
}

const FOCUSABLE = "button, input, select, summary, [tabindex]";

/** Does `work`, which may rebuild what `host` holds, and gives the focus back to the element in the same place. */
export function keepFocus(host, work) {
  const place = host.contains(document.activeElement) ? [...host.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement) : -1;
  work();
  if (place >= 0 && !host.contains(document.activeElement)) host.querySelectorAll(FOCUSABLE)[place]?.focus({ preventScroll: true });
}
