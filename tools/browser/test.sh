#!/usr/bin/env bash
# Runs the tests of test/browser in headless Chromium: test.sh PROJECT, which is one of playwright.config.js.
#
# It uses an installed Chromium. Where there is none, it installs Debian's package, which root alone may do. Playwright and axe-core
# come from npm, as package-lock.json pins them. The browsers that Playwright downloads are not used.
#
# Where one of them is missing, it prints the cause and skips the tests. With CI=true that is a failure.
set -euo pipefail

project=$1
cd "$(dirname "${BASH_SOURCE[0]}")/../../test/browser"

missing() {
	if [[ ${CI:-} == true ]]; then
		echo "browser: $*: the tests of project $project can't run" >&2
		exit 1
	fi
	echo "browser: $*: the tests of project $project are skipped" >&2
	exit 0
}

installed() { command -v chromium chromium-browser google-chrome; }

if ! installed >/dev/null; then
	command -v apt-get >/dev/null || missing "Chromium is not installed, and this is not Debian. Install Chromium"
	((UID == 0)) || missing "Chromium is not installed. Install it: sudo apt-get install chromium"
	echo "browser: installing Debian's package chromium"
	apt-get install -qq -y --no-install-recommends chromium >/dev/null || missing "apt-get can't install chromium (apt-get update may help)"
fi
command -v npm >/dev/null || missing "no npm in PATH. Install Node.js 20 or later with npm"
node --eval 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' || missing "Node.js $(node --version) is too old. Install Node.js 20 or later"

# npm writes the second file when it has installed everything.
if [[ ! node_modules/.package-lock.json -nt package-lock.json ]]; then
	echo "browser: installing Playwright and axe-core into test/browser/node_modules"
	npm ci --ignore-scripts --no-audit --no-fund --loglevel=error || missing "npm can't install what package-lock.json names"
fi
chromium=$(installed | head -1) || missing "apt-get has installed chromium, which is not in PATH"
CHROMIUM=$chromium exec node_modules/.bin/playwright test --project="$project"
