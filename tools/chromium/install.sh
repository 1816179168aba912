#!/usr/bin/env bash
# Provides Chromium and axe-core for the tests of HTML reports (make test-html). It uses an installed Chromium. Where there is
# none, it installs Debian's package, which root alone may do. axe-core comes from npm, into bin/axe.
#
# Without one of them the tests are skipped and say so. With CI=true that is a failure.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
bin=../../bin
version=4.14.1

missing() {
	echo "chromium: $*: the tests of HTML reports are skipped" >&2
	[[ ${CI:-} != true ]]
	exit
}

if ! command -v chromium chromium-browser google-chrome >/dev/null; then
	command -v apt-get >/dev/null || missing "not installed, and this is not Debian. Install Chromium"
	((UID == 0)) || missing "not installed. Install it: sudo apt-get install chromium"
	echo "chromium: installing Debian's package"
	apt-get install -qq -y --no-install-recommends chromium >/dev/null || missing "apt-get can't install it (apt-get update may help)"
fi

if [[ ! -f $bin/axe/$version/axe.min.js ]]; then
	command -v npm >/dev/null || missing "no npm in PATH, which axe-core needs. Install Node.js with npm"
	mkdir -p "$bin/axe"
	unpacking=$(mktemp -d "$bin/axe/.unpacking.XXXXXX")
	trap 'rm -rf "$unpacking"' EXIT
	(cd "$unpacking" && npm pack --silent "axe-core@$version" >/dev/null && tar -xzf ./*.tgz package/axe.min.js) || missing "npm can't get axe-core $version"
	mkdir -p "$bin/axe/$version"
	mv "$unpacking/package/axe.min.js" "$bin/axe/$version/axe.min.js"
	echo "chromium: unpacked $(readlink -f "$bin/axe/$version")"
fi
