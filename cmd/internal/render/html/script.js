"use strict";
for (const section of document.querySelectorAll("section.table")) {
  const field = section.querySelector("input");
  const output = section.querySelector("output");
  const rows = [...section.querySelectorAll("tbody tr")].map((row) => ({ row, text: row.textContent.toLowerCase() }));
  const search = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { row, text } of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    output.textContent = words.length ? shown + " of " + rows.length + " rows" : "";
  };
  field.addEventListener("input", search);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      field.value = "";
      search();
    }
  });
  section.querySelector(".search").hidden = rows.length === 0;
}
document.addEventListener("keydown", (event) => {
  const field = document.querySelector(".search:not([hidden]) input");
  if (event.key === "/" && field && !(event.target instanceof HTMLInputElement) && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    field.focus();
  }
});
