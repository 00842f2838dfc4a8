// The views linked to a selection: how many, of which clusters, what sets them apart, and which rows they are.
import * as Plot from "@observablehq/plot";
import { byLevel } from "./colours.js";
import { columnsApart, levelsApart } from "./differences.js";
import { make } from "./dom.js";
import { copy, csv, download } from "./export.js";
import { about, count, extent, number, percent } from "./numbers.js";
import { sortable } from "./tables.js";

const MOST_ROWS = 100;
const MOST_COLUMNS = 6;
const BINS = 24;

// Shares of rows between edges, of all and of the selection.
function bars(values, marks) {
  const [low, high] = extent(values.filter(Number.isFinite));
  const span = high - low || 1;
  const counts = [new Float64Array(BINS), new Float64Array(BINS)];
  const n = [0, 0];
  values.forEach((value, i) => {
    if (!Number.isFinite(value)) return;
    const bin = Math.min(BINS - 1, Math.floor((BINS * (value - low)) / span));
    for (const group of marks[i] ? [0, 1] : [0]) {
      counts[group][bin]++;
      n[group]++;
    }
  });
  return counts.flatMap((group, k) =>
    Array.from(group, (rows, bin) => ({ x1: low + (span * bin) / BINS, x2: low + (span * (bin + 1)) / BINS,
      share: rows / (n[k] || 1), chosen: k === 1 })));
}

function histogram({ column, apart, mean, rest }, marks) {
  const drawn = bars(column.values(), marks);
  const chart = Plot.plot({
    width: 280, height: 130, marginLeft: 8, marginBottom: 26, marginRight: 8, y: { axis: null }, x: { label: null, ticks: 4 },
    style: { background: "transparent", color: "var(--ink)", fontSize: "11px" },
    marks: [
      Plot.rectY(drawn.filter((bar) => !bar.chosen), { x1: "x1", x2: "x2", y: "share", fill: "var(--muted)", fillOpacity: 0.35, inset: 0 }),
      Plot.rectY(drawn.filter((bar) => bar.chosen), { x1: "x1", x2: "x2", y: "share", fill: "var(--accent)", fillOpacity: 0.65,
        inset: 0 }),
      Plot.ruleY([0], { stroke: "var(--muted)" }),
    ],
  });
  const words = `${column.name}: mean ${about(mean)} of the selection, ${about(rest)} of the others`;
  chart.setAttribute("role", "img");
  chart.setAttribute("aria-label", words);
  return make("figure", { class: "small" },
    make("figcaption", {}, make("b", {}, column.name),
      ` ${about(mean)} against ${about(rest)} (${Math.abs(apart).toFixed(1)} deviations ${apart > 0 ? "higher" : "lower"})`), chart);
}

function shares(data, rows, look) {
  if (!data.clusters) return [];
  const { names, codes } = data.clusters;
  const { entries } = byLevel("cluster", names, Int32Array.from(rows, (i) => codes[i]), { all: true });
  const all = byLevel("cluster", names, codes, { all: true }).entries;
  const shown = entries.map((entry, i) => ({ ...entry, all: all[i]?.count ?? entry.count })).filter((entry) => entry.count);
  return [make("div", { class: "shares" }, make("h3", {}, "Their groups"),
    make("ul", {}, ...shown.sort((a, b) => b.count - a.count).slice(0, 12).map((entry) =>
      make("li", {}, make("span", { class: "dot", style: `background: ${entry.colour(look)}` }),
        make("span", { class: "word" }, entry.name),
        make("span", { class: "count" }, `${percent(entry.count / rows.length)} (${percent(entry.count / entry.all)} of the group)`)))))];
}

function levels(data, rows) {
  const found = levelsApart(data.categories, rows, 6);
  if (!found.length) return [];
  return [make("div", { class: "shares" }, make("h3", {}, "More often than elsewhere"),
    make("ul", {}, ...found.map(({ name, level, share, overall }) =>
      make("li", {}, make("span", { class: "word" }, `${name}: ${level}`),
        make("span", { class: "count" }, `${percent(share)} (of all rows ${percent(overall)})`)))))];
}

function table(data, rows, apart) {
  const heads = [...data.ids.map(({ name }) => name), ...(data.clusters ? ["group"] : []),
    ...(data.confidence ? ["confidence"] : []), ...apart.map(({ column }) => column.name)];
  const value = (text, number) => make("td", { "data-value": Number.isFinite(number) ? number : null }, text);
  const body = Array.from(rows.slice(0, MOST_ROWS), (i) => make("tr", {},
    ...data.ids.map(({ of }) => make("td", { class: "l" }, of(i))),
    ...(data.clusters ? [make("td", { class: "l" }, data.clusters.names[data.clusters.codes[i]] ?? "–")] : []),
    ...(data.confidence ? [value(Number.isFinite(data.confidence[i]) ? percent(data.confidence[i]) : "–", data.confidence[i])] : []),
    ...apart.map(({ column }) => value(number(column.values()[i]), column.values()[i]))));
  const left = data.ids.length + (data.clusters ? 1 : 0);
  const made = make("table", {}, make("caption", { class: "unseen" }, "Selected rows"),
    make("thead", {}, make("tr", {}, ...heads.map((name, j) => make("th", { scope: "col", class: j < left ? "l" : null }, name)))),
    make("tbody", {}, ...body));
  sortable(made);
  return make("div", { class: "scroll rows", tabindex: "0", role: "region", "aria-label": "Selected rows" }, made);
}

export function showSelected(holder, data, rows, look, clear) {
  if (!rows.length) {
    holder.replaceChildren(make("p", { class: "hint" },
      "Nothing is selected. Press “Select rows” (or hold Shift) and draw a line around points to see what sets them apart."));
    return;
  }
  const marks = new Uint8Array(data.n);
  for (const i of rows) marks[i] = 1;
  const apart = rows.length < data.n ? columnsApart(data.columns, marks, MOST_COLUMNS) : [];
  const said = make("span", { role: "status" });
  const ids = () => Array.from(rows, (i) => data.ids.map(({ of }) => of(i)).join("\t")).join("\n");
  holder.replaceChildren(
    make("div", { class: "head" }, make("h3", {}, `${count(rows.length, "row")} selected, ${percent(rows.length / data.n)} of those shown`),
      make("button", { type: "button", onclick: async () => (said.textContent = (await copy(ids())) ? "Copied" : "The browser did not allow it") }, "Copy ids"),
      make("button", { type: "button", onclick: () => download(csv(data, rows), "selected-rows.csv") }, "Download CSV"),
      make("button", { type: "button", onclick: clear }, "Clear selection"), said),
    make("div", { class: "two" }, ...shares(data, rows, look), ...levels(data, rows)),
    ...(apart.length ? [make("h3", {}, "Columns that differ most from the other rows"),
      make("p", { class: "hint" }, make("span", { class: "key all" }), "all rows ", make("span", { class: "key mine" }), "the selection"),
      make("div", { class: "smalls" }, ...apart.map((one) => histogram(one, marks)))] : []),
    make("h3", {}, rows.length > MOST_ROWS ? `The first ${MOST_ROWS} of them` : "The rows"),
    table(data, rows, apart),
  );
}
