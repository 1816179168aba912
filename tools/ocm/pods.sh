#!/usr/bin/env bash
# Compiles the programs of Open Cluster Management that run as pods into bin/ocm-pods, at the version that go.mod pins. Only
# `make e2e-hub-pods` needs them all. It takes minutes with an empty build cache, and returns at once when nothing has changed.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
bin=../../bin
installed=$bin/ocm-pods

stamp=$({ cat go.mod go.sum pods.sh; go version; } | sha256sum)
if [[ $(cat "$installed/stamp" 2>/dev/null) == "$stamp" ]]; then
	exit 0
fi

# The module needs its own versions, which a workspace would raise. Images have no C library.
export GOWORK=off CGO_ENABLED=0

# One rename installs binaries and stamp, so that an interrupted build never looks complete.
mkdir -p "$bin"
building=$(mktemp -d "$bin/.ocm-pods.XXXXXX")
trap 'rm -rf "$building"' EXIT
for name in registration-operator registration work placement addon; do
	echo "ocm: building $name (the first build takes minutes)"
	go build -trimpath -ldflags '-s -w' -o "$building/$name" "open-cluster-management.io/ocm/cmd/$name"
done
echo "$stamp" >"$building/stamp"
chmod 755 "$building"
rm -rf "$installed"
mv "$building" "$installed"
