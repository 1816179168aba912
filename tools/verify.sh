#!/usr/bin/env bash
# Checks a change, cheapest first, and ends at the first failure. It changes no file except by regenerating; it fails if
# that changes a file.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# stage runs a check, and prints its name and time.
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

# files lists the files in git, and new files that are not ignored.
files() { # glob…
	git ls-files --cached --others --exclude-standard -- "${@/#/:(glob)}" | sort -u | while read -r file; do
		if [[ -e $file ]]; then echo "$file"; fi
	done
}

# modules lists the folder of every module, except those under testdata, which belong to tests.
modules() {
	files '**/go.mod' | grep -v /testdata/ | xargs -n 1 dirname
}

generated() {
	make --no-print-directory generate
}

# Every module is tidy by itself. Never run `go work sync` here: it would raise module 1 from the floor that its users
# need to the newest versions that any other module of the workspace needs.
#
# The modules of tools/matrix are left out: go mod tidy would download the sources of every version of Kubernetes. So are those of
# tools/operators: it would also look for modules of tests of old releases, some of which can't be had any more.
tidied() {
	local module
	for module in $(modules | grep -vE '^tools/(matrix|operators)/'); do
		(cd "$module" && GOWORK=off go mod tidy -diff) || fail "$module: run go mod tidy there, with GOWORK=off"
	done
}

# A module that is not in go.work would be neither linted nor tested. Only tools and examples/provider-upjet stay out, because
# they need their own versions: Upjet v2.3.0 does not build with the crossplane-runtime of the workspace.
workspace() {
	local listed
	listed=$(go list -m -f '{{.Dir}}' | sed "s|^$PWD|.|; s|^\./||" | sort)
	diff <(echo "$listed") <(modules | grep -vE '^(tools(/|$)|examples/provider-upjet$)' | sort) ||
		fail "go.work does not list every module outside tools and examples/provider-upjet (< listed, > exists): correct it with go work use"
}

formatted() {
	local wrong
	wrong=$(files '**/*.go' | xargs gofmt -s -l)
	[[ -z $wrong ]] || fail "run gofmt -s -w on:"$'\n'"$wrong"
	files '**/*.sh' .ci/run | while read -r script; do bash -n "$script"; done
}

worded() {
	tools/words.sh || fail "replace the words above"
}

linted() {
	make --no-print-directory lint
}

vetted() {
	go vet work
}

# The floors are in docs/adr/0001-modules.md. In the workspace, both modules get the newest libraries.
floor() {
	local module require
	for module in . externalname/crossplane; do
		(cd "$module" && GOWORK=off go build ./... && GOWORK=off go vet ./...)
	done
	for require in github.com/crossplane/crossplane-runtime/v2@v2.2.0 sigs.k8s.io/controller-runtime@v0.24.1 k8s.io/client-go@v0.36.3; do
		[[ $(GOWORK=off go -C externalname/crossplane list -m -f '{{.Path}}@{{.Version}}' "${require%@*}") == "$require" ]] ||
			fail "externalname/crossplane requires more than $require, which providers have"
	done
}

clean() {
	[[ -z $(git status --porcelain) ]] && return
	git --no-pager diff HEAD
	git status --short
	fail "the tree is not clean: commit your changes and the regenerated files"
}

stage "generated files are current" generated
stage "every module is tidy" tidied
stage "go.work is complete" workspace
stage "Go is formatted and shell parses" formatted
stage "one thing has one word" worded
stage "golangci-lint" linted
stage "go vet" vetted
stage "what others embed builds alone, at its floor" floor
stage "the tree is clean" clean
echo "verify: passed"
