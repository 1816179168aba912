"""Lets mkdocs read the repository's Markdown as GitHub does.

The files stay as GitHub shows them. This module adds those outside of docs/ to the site, turns links to files that are
no pages into links to the repository, and names headings as GitHub does. It fails the build where the site would show
another text than GitHub, because Python-Markdown and GitHub differ, in lists for example.
"""

import html
import logging
import os
import posixpath
import re
import shutil
from pathlib import Path
from urllib.parse import urlsplit

from markdown import Extension
from markdown.treeprocessors import Treeprocessor
from markdown_it import MarkdownIt
from mkdocs.structure.files import File

log = logging.getLogger("mkdocs.hooks.godwit")

ROOT = Path(__file__).resolve().parents[2]
VERSION = os.environ["GODWIT_DOCS_VERSION"]
SCRIPTS = Path(os.environ["GODWIT_DOCS_SCRIPTS"])

# Pages from files outside of docs/.
OUTSIDE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "explanation/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "SUPPORT.md": "project/support.md",
    "charts/godwit/README.md": "reference/chart.md",
    "examples/README.md": "examples/index.md",
}
MOVED = {"dependencies.md": "project/dependencies.md"}  # from docs/, into the folder of its section
SURFACE = "reference/surface.txt"


class Site:
    """Which file of the repository is which page."""

    def __init__(self):
        self.page_of = {}  # path in the repository: path of the page's source on the site
        self.path_of = {}  # the reverse
        self.current = None  # the page that is rendered
        self.original = ""  # its text in the repository

    def add(self, path, source):
        self.page_of[path] = source
        self.path_of[source] = path


site = Site()


def outside():
    """Files outside of docs/ that are there, with their places on the site."""
    for path, source in OUTSIDE.items():
        if (ROOT / path).is_file():
            yield path, source
    for readme in sorted(ROOT.glob("examples/*/README.md")):
        yield readme.relative_to(ROOT).as_posix(), f"examples/{readme.parent.name}.md"


def slug(heading, separator):
    """GitHub's name of a heading."""
    return re.sub(r"[^\w\- ]", "", html.unescape(heading).lower()).replace(" ", separator)


def on_config(config):
    config.extra["version_name"] = VERSION
    config.mdx_configs.setdefault("toc", {})["slugify"] = slug
    config.markdown_extensions.append(Links())
    return config


def on_files(files, config):
    for file in list(files):
        path = posixpath.join("docs", file.src_uri)
        if file.src_uri in MOVED:
            files.remove(file)
            file = File.generated(config, MOVED[file.src_uri], abs_src_path=file.abs_src_path)
            files.append(file)
        if file.is_documentation_page():
            site.add(path, file.src_uri)
    for path, source in outside():
        files.append(File.generated(config, source, abs_src_path=str(ROOT / path)))
        site.add(path, source)
    files.append(File.generated(config, SURFACE.replace(".txt", ".md"), content=surface(ROOT / "docs" / SURFACE)))
    site.add("docs/" + SURFACE, SURFACE.replace(".txt", ".md"))
    if files.get_file_from_path("tutorials/index.md") is None:
        files.append(File.generated(config, "tutorials/index.md", content=tutorials(ROOT / "docs" / "tutorials")))
        site.add("docs/tutorials", "tutorials/index.md")
    config.nav = expand(config.nav, [f.src_uri for f in files.documentation_pages()])
    return files


def surface(file):
    """The Go API, with a section for each package."""
    title, *packages = file.read_text(encoding="utf-8").split("\npackage ")
    text = "# Go API\n\n" + title.lstrip("# ").strip().replace(" Do not edit: make generate writes it.", "") + "\n"
    for package in packages:
        name, _, names = package.partition("\n")
        lines = "\n".join(line.removeprefix("  ") for line in names.strip("\n").splitlines())
        text += f"\n## {name}\n\n```go\n{lines}\n```\n"
    return text


def tutorials(folder):
    """A list of the tutorials with their first paragraphs."""
    text = "# Tutorials\n\nA tutorial shows a procedure with an example, its output and the reasons. A test runs each command.\n"
    for file in sorted(folder.glob("*.md")):
        title, _, rest = file.read_text(encoding="utf-8").partition("\n")
        first = next(p for p in rest.split("\n\n") if p.strip() and not p.lstrip().startswith(("#", "```", "|", "-")))
        first = first.strip().replace("](#", f"]({file.name}#")  # a section of the tutorial, not of this list
        text += f"\n## [{title.lstrip('# ')}]({file.name})\n\n{first}\n"
    return text


def expand(nav, pages):
    """Replaces names that end in /* by the pages that have no line of their own, and leaves out pages that are not there."""
    named = set(re.findall(r"[\w./-]+\.md", str(nav)))

    def items(item):
        if isinstance(item, str):
            if item.endswith("/*"):
                return [p for p in sorted(pages) if posixpath.dirname(p) + "/*" == item and p not in named]
            return [item]
        return [{title: value if isinstance(value, str) else [i for v in value for i in items(v)]} for title, value in item.items()]

    return [i for item in nav for i in items(item)]


def on_page_markdown(markdown, page, config, files):
    site.current = page.file.src_uri
    if site.current.startswith("adr/"):
        page.meta.setdefault("search", {"exclude": True})  # a reader searches for what to do, and the pages link the reasons
    if site.current == "errors/convert-from-an-invalid-version.md":
        page.meta.setdefault("search", {"boost": 2})  # the search knows no "from" and "to": of two messages, the outage is first
    if site.current.startswith("reference/commands/"):
        page.meta.setdefault("search", {"boost": 2})  # all pages have commands: of its name, the page of the command is first
    if page.file.src_uri == "index.md":
        page.meta.setdefault("hide", ["navigation"])  # it would have one line
    if heading := re.search(r"^# (.+)$", markdown, re.MULTILINE):
        page.meta.setdefault("title", heading[1].replace("`", ""))  # mkdocs finds none after a comment
    site.original = markdown
    return indented(markdown)


ITEM = re.compile(r"(?:\d+\.|[-*+]) +(?=\S)")


def indented(markdown):
    """Writes lists as Python-Markdown needs them: indented by four columns, with the ends of paragraphs. Within the code of
    a table, it needs no backslash before a bar, and would show it."""
    lines, width, paragraphs = [], 0, False
    for line in markdown.split("\n"):
        if found := ITEM.match(line):
            if width and paragraphs and lines[-1]:
                lines.append("")
            width, paragraphs = found.end(), False
        elif not line:
            paragraphs = True
        elif width and line.startswith(" " * width):
            line = " " * max(0, 4 - width) + line
        elif line and not line.startswith(" "):
            width = 0
        if line.startswith("|"):
            line = re.sub(r"`[^`]+`", lambda code: code[0].replace("\\|", "|"), line)
        lines.append(line)
    return "\n".join(lines)


class Links(Extension):
    def extendMarkdown(self, md):
        # After the links are parsed, and before mkdocs resolves them.
        md.treeprocessors.register(Rewrite(md), "godwit", 5)


class Rewrite(Treeprocessor):
    """Makes a link within the repository one to a page, or one to the repository."""

    def run(self, root):
        for element in root.iter():
            for attribute in ("href", "src"):
                to = element.get(attribute)
                if to and site.current in site.path_of:
                    element.set(attribute, target(to))


def target(to):
    parts = urlsplit(to)
    if parts.scheme or parts.netloc or not parts.path:
        return to
    here = site.path_of[site.current]
    folder = here if (ROOT / here).is_dir() else posixpath.dirname(here)
    path = posixpath.normpath(posixpath.join(folder, parts.path))
    fragment = "#" + parts.fragment if parts.fragment else ""
    for page in (path, path + "/README.md"):
        if page in site.page_of:
            return posixpath.relpath(site.page_of[page], posixpath.dirname(site.current) or ".") + fragment
    if path.startswith("docs/") and (ROOT / path).is_file() and not path.endswith((".sh", ".txt")):
        return posixpath.relpath(path.removeprefix("docs/"), posixpath.dirname(site.current) or ".") + fragment
    if not (ROOT / path).exists():
        log.warning("%s: the link to %s is broken: there is no %s", here, to, path)
    kind = "tree" if (ROOT / path).is_dir() else "blob"
    return f"https://github.com/godwit-dev/godwit/{kind}/{VERSION}/{path}{fragment}"


# What the two renderings of a page have in common: the number of these elements, and the text.
COUNTED = ("li", "table", "tr", "td", "pre", "blockquote", "img", "h1", "h2", "h3", "h4", "em", "strong", "del")
GITHUB = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def on_page_content(content, page, config, files):
    if page.file.abs_src_path is None:  # no file of the repository
        return content
    content = content.replace('<input type="checkbox"', '<input type="checkbox" aria-label="Done"')
    want = re.sub(r"(<li>\s*(?:<p>)?)\[[ x]\]", r"\1", GITHUB.render(site.original))  # it has no task lists
    for tag in COUNTED:
        shown, expected = len(re.findall(f"<{tag}[ >]", content)), len(re.findall(f"<{tag}[ >]", want))
        if shown != expected:
            log.warning("%s: the site shows %d <%s>, GitHub %d", site.path_of[page.file.src_uri], shown, tag, expected)
    shown, expected = words(content), words(want)
    for number, (a, b) in enumerate(zip(shown + [""], expected + [""])):
        if a != b:
            log.warning("%s: the site shows %r, GitHub %r", site.path_of[page.file.src_uri],
                        " ".join(shown[max(0, number - 5):number + 5]), " ".join(expected[max(0, number - 5):number + 5]))
            break
    return content


def words(content):
    content = re.sub(r'<a class="headerlink".*?</a>', "", content)
    content = re.sub(r"</?(p|li|td|th|tr|h\d|pre|div|br)\b[^>]*>", " ", content)
    return html.unescape(re.sub(r"<[^>]+>", "", content)).split()


def on_post_page(output, page, config):
    output = output.replace('data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"', 1)
    # 3 MB that only a page with a diagram loads. The theme would load them from another host.
    if 'class="mermaid"' in output:
        script = posixpath.relpath("assets/javascripts/mermaid.js", posixpath.dirname(page.file.dest_uri) or ".")
        output = output.replace("</head>", f'<script src="{script}"></script></head>', 1)
    return output


def on_post_build(config):
    # It would look for its styles at the root of the host, where other versions are.
    (Path(config.site_dir) / "404.html").unlink()
    to = Path(config.site_dir) / "assets" / "javascripts"
    for name in ("mermaid.js", "iframe-worker.js"):
        shutil.copy(SCRIPTS / name, to / name)
