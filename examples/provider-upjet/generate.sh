#!/usr/bin/env bash
# Generates the types, the controllers and the CRDs of the provider, as providers on Upjet do. It needs no network once modules
# are downloaded: the schema comes from the Terraform provider's Go package. With the argument check it fails if a file was not
# current.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
export GOWORK=off

tools=$(mktemp -d)
trap 'rm -rf "$tools" hack examples-generated' EXIT

generated() {
	find apis internal crds -name 'zz_*' -o -name '*.yaml' | sort | xargs sha256sum
}

before=$(generated)
go build -o "$tools/goimports" golang.org/x/tools/cmd/goimports # Upjet starts it by its name.
find apis internal -name 'zz_*' -delete
rm -rf crds
mkdir hack
touch hack/boilerplate.go.txt
PATH=$tools:$PATH go run ./cmd/generator . >"$tools/log" || { cat "$tools/log" >&2; exit 1; }
go tool -modfile=../../tools/controller-gen/go.mod controller-gen object paths=./apis/... crd output:crd:dir=crds
go tool angryjet generate-methodsets ./apis/...
[[ ${1:-} != check ]] || diff <(echo "$before") <(generated) || { echo "provider-upjet: commit what generate.sh has generated" >&2; exit 1; }
