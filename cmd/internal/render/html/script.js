"use strict";
const sections = [...document.querySelectorAll("section.table")].map((section) => ({
  section,
  groups: [...section.querySelectorAll("tbody")].map((group) => {
    const command = group.querySelector(".next code")?.textContent ?? "";
    const rows = [...group.querySelectorAll("tr:not(.next)")];
    return { group, rows: rows.map((row) => ({ row, text: (row.textContent + " " + command).toLowerCase() })) };
  }),
}));
const field = document.getElementById("search");
const search = () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  let all = 0;
  for (const { section, groups } of sections) {
    let left = 0;
    for (const { group, rows } of groups) {
      for (const { row, text } of rows) {
        row.hidden = !words.every((word) => text.includes(word));
      }
      const count = rows.filter(({ row }) => !row.hidden).length;
      group.hidden = count === 0;
      left += count;
      all += rows.length;
    }
    section.hidden = words.length > 0 && left === 0;
    shown += left;
  }
  document.querySelector("output").textContent = words.length ? shown + " of " + all + " rows" : "";
};
if (field) {
  field.closest(".search").hidden = false;
  field.addEventListener("input", search);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      field.value = "";
      search();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !(event.target instanceof HTMLInputElement) && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      field.focus();
    }
  });
}

// A page that is served without TLS has no clipboard: there, the text of a field is copied.
const copy = async (text) => {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
};
for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await copy(button.previousElementSibling.textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}
