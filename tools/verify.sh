#!/usr/bin/env bash
# Checks what a change must keep, cheapest first, and ends at the first thing that is wrong. It changes no file except
# by regenerating, and what that changes makes it fail.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# stage says what is checked, and how long it took.
stage() { # name function
	local began=$SECONDS
	echo "verify: $1"
	"$2"
	echo "verify: $1: $((SECONDS - began)) s"
}

fail() {
	echo "verify: $*" >&2
	exit 1
}

# files lists what is in git, or is about to be.
files() { # glob…
	git ls-files --cached --others --exclude-standard -- "${@/#/:(glob)}" | sort -u | while read -r file; do
		if [[ -e $file ]]; then echo "$file"; fi
	done
}

# modules lists the folder of every module but those under testdata, which belong to the tests that read them.
modules() {
	files '**/go.mod' | grep -v /testdata/ | xargs -n 1 dirname
}

generated() {
	make --no-print-directory generate
}

# Every module is tidy by itself. There is no `go work sync` here and must be none: it would raise module 1 from the
# floor that its users stand on to the newest versions that any other module of the workspace needs.
tidied() {
	local module
	for module in $(modules); do
		(cd "$module" && GOWORK=off go mod tidy -diff) || fail "$module: run go mod tidy there, with GOWORK=off"
	done
}

# Whatever is not in go.work would be neither linted nor tested. Tools alone stay out, for versions of their own.
workspace() {
	local listed
	listed=$(go list -m -f '{{.Dir}}' | sed "s|^$PWD|.|; s|^\./||" | sort)
	diff <(echo "$listed") <(modules | grep -vE '^tools(/|$)' | sort) ||
		fail "go.work does not list every module outside tools (< listed, > exists): correct it with go work use"
}

formatted() {
	local wrong
	wrong=$(files '**/*.go' | xargs gofmt -s -l)
	[[ -z $wrong ]] || fail "run gofmt -s -w on:"$'\n'"$wrong"
	files '**/*.sh' .ci/run | while read -r script; do bash -n "$script"; done
}

worded() {
	tools/words.sh || fail "a word has another name here"
}

linted() {
	make --no-print-directory lint
}

vetted() {
	go vet work
}

floor() {
	GOWORK=off go build ./...
	GOWORK=off go vet ./...
}

clean() {
	[[ -z $(git status --porcelain) ]] && return
	git --no-pager diff HEAD
	git status --short
	fail "the tree is not clean: commit what you changed, or what was regenerated"
}

stage "generated files are current" generated
stage "every module is tidy" tidied
stage "go.work is complete" workspace
stage "Go is formatted and shell parses" formatted
stage "one thing has one word" worded
stage "golangci-lint" linted
stage "go vet" vetted
stage "module 1 builds alone, at its floor" floor
stage "the tree is clean" clean
echo "verify: all is well"
