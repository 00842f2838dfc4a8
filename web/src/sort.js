// Starts the tables of a page that can be sorted and searched.
import { ready } from "./dom.js";
import { searchable, sortable } from "./tables.js";

ready(() => {
  for (const table of document.querySelectorAll("table[data-searchable]")) {
    if (table.tHead) sortable(table);
    if (table.tBodies[0].rows.length > 5) searchable(table);
  }
});
