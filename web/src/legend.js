// What the colours mean; an entry that is clicked is shown alone.
import { make } from "./dom.js";
import { count, number } from "./numbers.js";
import { onScale } from "./colours.js";

export function legend(holder, colouring, look, only, choose) {
  if (colouring.kind === "scale") {
    const stops = Array.from({ length: 9 }, (_, i) => onScale(look, i / 8)).join(", ");
    const [low, high] = [number(colouring.low), number(colouring.high)];
    holder.replaceChildren(
      make("span", { class: "name" }, colouring.name),
      make("span", {}, colouring.beyond ? `≤ ${low}` : low),
      make("span", { class: "ramp", style: `background: linear-gradient(to right, ${stops})` }),
      make("span", {}, colouring.beyond ? `≥ ${high}` : high),
      ...(colouring.beyond ? [make("span", { class: "remark" }, "the ends are those of the middle 98 % of the rows")] : []),
      ...(colouring.missing ? [make("span", { class: "remark" }, `grey: ${count(colouring.missing, "row")} without a value`)] : []),
    );
    return;
  }
  const entries = colouring.entries.map((entry, i) =>
    make("button", { type: "button", "aria-pressed": String(only === i), title: "Show only these rows, or all again",
      onclick: () => choose(only === i ? null : i) },
      make("span", { class: "dot", style: `background: ${entry.colour(look)}` }),
      make("span", { class: "word" }, entry.name), make("span", { class: "count" }, entry.count.toLocaleString("en"))));
  holder.replaceChildren(...entries);
}
