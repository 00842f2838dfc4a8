// The choices above the plot.
import { make } from "./dom.js";

const option = (value, text) => make("option", { value }, text);

function choice(label, options, change) {
  const select = make("select", { "aria-label": label, onchange: () => change(select.value) }, ...options);
  return { element: make("label", { class: "choice" }, make("span", {}, label), select), select };
}

export function controls(data, act) {
  const names = data.components.map(({ name }, j) => option(j, name));
  const across = choice("Across", names.map((one) => one.cloneNode(true)), (value) => act.component("across", Number(value)));
  const up = choice("Up", names, (value) => act.component("up", Number(value)));
  const group = (label, options) => (options.length ? [make("optgroup", { label }, ...options)] : []);
  const colour = choice("Colour", [
    ...(data.clusters ? [option("cluster", "group")] : []),
    ...(data.confidence ? [option("confidence", "confidence")] : []),
    ...(data.clusters ? [] : [option("none", "one colour")]),
    ...group("Categories", data.categories.map(({ name }, j) => option(`category-${j}`, name))),
    ...group("Columns", data.columns.map(({ name }, j) => option(`column-${j}`, name))),
  ], act.colour);
  const button = (text, onclick, more = {}) => make("button", { type: "button", onclick, ...more }, text);
  const lasso = button("Select rows", act.lasso, { "aria-pressed": "false", title: "Draw a line around points (or hold Shift and drag)" });
  const element = make("div", { class: "controls" },
    make("div", { class: "choices" }, across.element, up.element, colour.element),
    make("div", { class: "buttons" }, lasso,
      button("+", () => act.zoom(0.6), { "aria-label": "Zoom in", title: "Zoom in" }),
      button("−", () => act.zoom(1 / 0.6), { "aria-label": "Zoom out", title: "Zoom out" }),
      button("All rows", act.whole, { title: "Show every row again" }),
      button("Zoom to the middle 99 %", act.middle, { title: "Leave out of view the 1 % of the rows that lie furthest out" })));
  return { element, lasso, across: across.select, up: up.select, colour: colour.select };
}
