#!/usr/bin/env bash
# Builds the documentation of the files here as version VERSION of the site: bin/site/VERSION, and bin/site/versions.json.
# The other versions stay as they are. The site has no reference to another host, and works from files as from a server.
#
# It needs Python 3.10 with venv, and npm. mkdocs comes from PyPI as requirements.txt pins it, mermaid and iframe-worker
# from npm.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
bin=$(cd ../.. && pwd)/bin
version=${1:-main}

# What pages load besides the theme: name, version, file, and checksum of the package.
scripts=(
	"mermaid 11.17.2 dist/mermaid.min.js sha512-V6K3C8EBdEsPFZXSKMJe6ppQOENxuHARr9GvHX4hh47lAbhMRD9qf4oEK7LoaRQxULMa80/qt5gHO73aCleBBg=="
	"iframe-worker 1.0.4 shim/index.js sha512-roeaaI+Lg1LJNfgpCjoRe/+WzEjy9+Z08LoEvu85MCPbBjwm+qXz8Ag5U05lHa6V1CysZyGzE0SOkAtSUA5q7Q=="
)

fail() {
	echo "docs: $*" >&2
	exit 1
}

[[ $version =~ ^(main|v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?)$ ]] ||
	fail "VERSION is $version: it must be main, or a version such as v1.2.3"
command -v python3 >/dev/null || fail "no python3 in PATH. Install Python 3.10 or later: apt-get install python3-venv"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
	fail "$(python3 --version) is too old. Install Python 3.10 or later"
python3 -c 'import venv, ensurepip' 2>/dev/null || fail "python3 has no venv. Install it: apt-get install python3-venv"
command -v npm >/dev/null || fail "no npm in PATH, which mermaid needs. Install Node.js with npm: apt-get install npm"

# One rename installs everything, so that an interrupted download never looks complete.
installed=$bin/mkdocs
stamp=$(printf '%s\n' "${scripts[@]}" | cat requirements.txt - | cksum)
mkdir -p "$bin"
work=$(mktemp -d "$bin/.docs.XXXXXX")
trap 'rm -rf "$work"' EXIT

install_scripts() {
	local script name release file checksum got
	mkdir -p "$installed/scripts"
	for script in "${scripts[@]}"; do
		read -r name release file checksum <<<"$script"
		got=$(cd "$work" && npm pack --silent "$name@$release" 2>"$work/npm.log") ||
			fail "npm can't get $name $release: $(tail -1 "$work/npm.log")"
		[[ sha512-$(python3 -c 'import base64, hashlib, sys; print(base64.b64encode(hashlib.sha512(open(sys.argv[1], "rb").read()).digest()).decode())' "$work/$got") == "$checksum" ]] ||
			fail "$name $release of npm does not have the checksum of build.sh"
		tar -xzf "$work/$got" -C "$work" "package/$file"
		mv "$work/package/$file" "$installed/scripts/$name.js"
	done
}

if [[ $(cat "$installed/stamp" 2>/dev/null) != "$stamp" ]]; then
	echo "docs: installing mkdocs into bin/mkdocs"
	rm -rf "$installed"
	python3 -m venv "$installed"
	"$installed/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements.txt \
		2>"$work/pip.log" || fail "pip can't install requirements.txt: $(grep -m 1 ERROR "$work/pip.log" || tail -1 "$work/pip.log")"
	install_scripts
	echo "$stamp" >"$installed/stamp"
fi

echo "docs: checking the links of all Markdown files"
(cd ../.. && go test -count=1 -vet=off -run '^TestRepository$' ./test/docs/links) >"$work/links.log" 2>&1 || {
	grep 'broken' "$work/links.log" >&2 || cat "$work/links.log" >&2
	fail "correct the links above"
}

echo "docs: building version $version"
export PYTHONDONTWRITEBYTECODE=1 GODWIT_DOCS_VERSION=$version GODWIT_DOCS_OUT=$work/site GODWIT_DOCS_SCRIPTS=$installed/scripts
# Its banner about another program is not a part of the build.
if ! NO_MKDOCS_2_WARNING=1 "$installed/bin/mkdocs" build --config-file mkdocs.yml >"$work/mkdocs.log" 2>&1; then
	grep -v '^INFO' "$work/mkdocs.log" >&2
	fail "nothing was written: correct the lines above"
fi

mkdir -p "$bin/site"
rm -rf "${bin:?}/site/$version"
mv "$work/site" "$bin/site/$version"
"$installed/bin/python" versions.py "$bin/site"
echo "docs: open bin/site/$version/index.html, $(find "$bin/site/$version" -name '*.html' | wc -l) pages"
