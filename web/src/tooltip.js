// What is known about the row under the pointer, in a box that stays inside the window.
import { make } from "./dom.js";
import { about, number, percent } from "./numbers.js";

const MOST = 12;

export function factsOf(data, i, [across, up]) {
  const facts = data.ids.map((id) => [id.name, id.of(i)]);
  if (data.clusters) facts.push(["group", data.clusters.names[data.clusters.codes[i]] ?? "in none"]);
  if (data.confidence) facts.push(["confidence", Number.isFinite(data.confidence[i]) ? percent(data.confidence[i]) : "–"]);
  const told = new Set(data.ids.map((id) => id.name)); // a label is both
  for (const { name, levels, codes } of data.categories.filter((one) => !told.has(one.name)).slice(0, MOST)) facts.push([name, levels[codes()[i]] ?? "–"]);
  for (const { name, values } of data.columns.slice(0, MOST)) facts.push([name, number(values()[i])]);
  for (const { name, values } of across === up ? [across] : [across, up]) facts.push([name, about(values()[i])]);
  return facts;
}

export function tooltip(parent) {
  const box = make("div", { class: "tip", role: "tooltip", hidden: true });
  parent.append(box);
  return {
    hide: () => (box.hidden = true),
    show(facts, x, y) {
      box.replaceChildren(make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])));
      box.hidden = false;
      const { width, height } = box.getBoundingClientRect();
      const room = document.documentElement;
      const left = x + 14 + width > room.clientWidth ? x - 14 - width : x + 14;
      const top = y + 14 + height > room.clientHeight ? y - 14 - height : y + 14;
      box.style.left = `${Math.max(4, Math.min(left, room.clientWidth - width - 4))}px`;
      box.style.top = `${Math.max(4, Math.min(top, room.clientHeight - height - 4))}px`;
    },
  };
}
