// The selector of the version. versions.js of the site has the versions; a page of a single version has no selector.
(() => {
  const versions = window.godwitVersions || [];
  const current = document.querySelector('meta[name="godwit-version"]')?.content;
  const place = document.querySelector(".md-header__title");
  if (versions.length < 2 || !current || !place) {
    return;
  }
  const select = document.createElement("select");
  select.className = "godwit-version";
  select.setAttribute("aria-label", "Version");
  for (const { version, title } of versions) {
    select.add(new Option(title, version, version === current, version === current));
  }
  const root = new URL("..", new URL(__md_scope)); // of all versions
  // The page of the same name, or the front page where the other version lacks it. Without a server there is no way to tell.
  select.addEventListener("change", async () => {
    const to = new URL(location.href.slice(new URL(".", __md_scope).href.length), new URL(select.value + "/", root));
    if (location.protocol !== "file:" && !(await fetch(to, { method: "HEAD" }).then((r) => r.ok, () => false))) {
      to.href = new URL(select.value + "/index.html", root);
    }
    location.href = to.href;
  });
  place.after(select);
})();

// What scrolls can be scrolled with the keyboard: wide tables and long lines of code.
(() => {
  const update = () => {
    for (const region of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code, .md-typeset .mermaid")) {
      if (region.scrollWidth > region.clientWidth) {
        region.tabIndex = 0;
      } else {
        region.removeAttribute("tabindex");
      }
    }
  };
  addEventListener("load", () => {
    update();
    new ResizeObserver(update).observe(document.querySelector(".md-content"));
  });
})();

// The button of a block with prompts copies its commands, without prompts and output. The theme copies what this attribute has.
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-clipboard-target]");
  const block = button && document.querySelector(button.dataset.clipboardTarget);
  if (!block?.closest(".language-console")) {
    return;
  }
  const commands = [];
  let continued = false;
  for (const line of block.textContent.split("\n")) {
    if (line.startsWith("$ ") || continued) {
      commands.push(continued ? line : line.slice(2));
      continued = line.endsWith("\\");
    }
  }
  button.dataset.clipboardText = commands.join("\n");
}, true);
