// Selected rows as text to paste, and as a CSV file.
import { make } from "./dom.js";

const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

export function csv(data, rows) {
  const fields = data.ids.map(({ name, of }) => [name, of]);
  if (data.clusters) fields.push(["cluster", (i) => data.clusters.names[data.clusters.codes[i]] ?? ""]);
  if (data.confidence) fields.push(["confidence", (i) => data.confidence[i]]);
  for (const { name, levels, codes } of data.categories) fields.push([name, (i) => levels[codes()[i]] ?? ""]);
  for (const { name, values } of [...data.columns, ...data.components]) fields.push([name, (i) => values()[i]]);
  const cell = (value) => {
    if (typeof value !== "number") return quoted(value);
    return Number.isFinite(value) ? String(Number(value.toPrecision(7))) : "";
  };
  const lines = [fields.map(([name]) => quoted(name)), ...Array.from(rows, (i) => fields.map(([, of]) => cell(of(i))))];
  return lines.map((line) => line.join(",")).join("\r\n") + "\r\n";
}

export function download(text, name) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  const link = make("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// The clipboard may be refused to pages from files; then by way of a selected text field.
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = make("textarea", { class: "unseen" });
    field.value = text;
    document.body.append(field);
    field.select();
    const copied = document.execCommand("copy");
    field.remove();
    return copied;
  }
}
