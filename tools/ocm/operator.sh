#!/usr/bin/env bash
# Compiles the klusterlet operator of Open Cluster Management, which is also the registration agent and the work agent of a cluster, into
# bin/ocm-operator. Only `make e2e-hub-import` and `make e2e-hub-plain` need it. It takes minutes with an empty build cache, and returns at
# once when nothing has changed.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
installed=../../bin/ocm-operator

# macOS has no sha256sum.
sha256=$(command -v sha256sum || echo shasum -a 256)
stamp=$({ cat go.mod go.sum operator.sh; go version; } | $sha256)
if [[ $(cat "$installed/stamp" 2>/dev/null) == "$stamp" ]]; then
	exit 0
fi

# The module needs its own versions, which a workspace would raise. The build needs no C compiler.
export GOWORK=off CGO_ENABLED=0
mkdir -p "$installed"
echo "ocm: building registration-operator (the first build takes minutes)"
go build -trimpath -ldflags '-s -w' -o "$installed/registration-operator" open-cluster-management.io/ocm/cmd/registration-operator
echo "$stamp" >"$installed/stamp"
