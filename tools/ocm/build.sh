#!/usr/bin/env bash
# Compiles programs of Open Cluster Management into bin/ocm, at the versions that the two go.mods pin: the registration
# controller and agent, and the token reconciler of managed-serviceaccount.
# It takes minutes with an empty build cache, and returns at once when nothing has changed.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
bin=../../bin
installed=$bin/ocm

# The stamp covers everything that the bytes of the binaries depend on. macOS has no sha256sum.
sha256=$(command -v sha256sum || echo shasum -a 256)
stamp=$({ cat go.mod go.sum build.sh managed-serviceaccount/{go.mod,go.sum,main.go}; go version; } | $sha256)
if [[ $(cat "$installed/stamp" 2>/dev/null) == "$stamp" ]]; then
	exit 0
fi

# The modules need their own versions, which a workspace would raise. The build needs no C compiler.
export GOWORK=off CGO_ENABLED=0
version=$(go list -m -f '{{.Version}}' open-cluster-management.io/ocm)

# One rename installs binaries and stamp, so that an interrupted build never looks complete.
mkdir -p "$bin"
building=$(mktemp -d "$bin/.ocm.XXXXXX")
trap 'rm -rf "$building"' EXIT
echo "ocm: building registration (the first build takes minutes)"
go build -trimpath -ldflags '-s -w' -o "$building/registration" open-cluster-management.io/ocm/cmd/registration
echo "ocm: building managed-serviceaccount"
go build -C managed-serviceaccount -trimpath -ldflags '-s -w' -o "$PWD/$building/managed-serviceaccount" .
echo "$stamp" >"$building/stamp"
chmod 755 "$building"
rm -rf "$installed"
mv "$building" "$installed"
echo "ocm: installed Open Cluster Management $version in bin/ocm"
