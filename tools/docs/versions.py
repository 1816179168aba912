"""Lists the versions of a site, newest release first, for the selector on its pages.

    versions.py SITE

versions.json is for programs, in the form of mike. versions.js is the same for pages that are opened without a server,
where a page can't read JSON. index.html leads to the newest release, or to main where there is none.
"""

import html
import json
import pathlib
import re
import sys

RELEASE = re.compile(r"v(\d+)\.(\d+)\.(\d+)(?:-(.+))?")


def order(version):
    """The newest release first, each after its candidates, and main last."""
    found = RELEASE.fullmatch(version)
    if not found:
        return (-1,)
    *numbers, candidate = found.groups()
    # Numbers of a candidate are compared as numbers, and are before words.
    parts = tuple((not p.isdigit(), int(p) if p.isdigit() else 0, p) for p in re.split(r"[.-]", candidate or ""))
    return (*map(int, numbers), candidate is None, parts)


def write(site):
    names = sorted((d.name for d in site.iterdir() if (d / "index.html").is_file()), key=order, reverse=True)
    released = [n for n in names if RELEASE.fullmatch(n) and "-" not in n]
    newest = (released or names)[0]
    versions = [{"version": n, "title": n, "aliases": ["latest"] if n in released[:1] else []} for n in names]
    text = json.dumps(versions, indent=2)
    (site / "versions.json").write_text(text + "\n", encoding="utf-8")
    (site / "versions.js").write_text(f"window.godwitVersions = {text};\n", encoding="utf-8")
    to = html.escape(newest)
    (site / "index.html").write_text(
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Godwit</title>\n'
        f'<meta http-equiv="refresh" content="0; url={to}/index.html">\n'
        f'<p><a href="{to}/index.html">Documentation of Godwit {to}</a></p>\n</html>\n',
        encoding="utf-8",
    )


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]))
