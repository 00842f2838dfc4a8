// Tables that can be sorted by any column, and searched.
import { make } from "./dom.js";

const order = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

// A cell's number if it has one, else its text; cells without a value come last both ways.
function valueOf(cell) {
  const value = cell?.dataset.value;
  if (value !== undefined) return Number(value);
  const text = cell?.textContent.trim() ?? "";
  return text === "-" || text === "–" ? "" : text;
}

export function compare(a, b) {
  if (a === "" || b === "") return 0;
  if (typeof a === "number" && typeof b === "number") return a - b;
  return order.compare(String(a), String(b));
}

export function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, j) => {
    const button = make("button", { type: "button" });
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      const body = table.tBodies[0];
      const rows = [...body.rows].map((row) => ({ row, value: valueOf(row.cells[j]) }));
      rows.sort((a, b) => (a.value === "") - (b.value === "") || (up ? 1 : -1) * compare(a.value, b.value));
      body.append(...rows.map(({ row }) => row));
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
    });
  });
}

export function searchable(table) {
  const rows = [...table.tBodies[0].rows];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const told = make("span", { "aria-live": "polite" });
  const input = make("input", { type: "search", placeholder: "Search these rows", autocomplete: "off" });
  input.setAttribute("aria-label", `Search: ${table.caption?.textContent ?? "table"}`);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    rows.forEach((row, i) => {
      row.hidden = !words.every((word) => texts[i].includes(word));
      found += !row.hidden;
    });
    told.textContent = words.length ? `${found.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows` : "";
  });
  const holder = table.closest(".scroll") ?? table;
  holder.before(make("div", { class: "find" }, input, told));
}
