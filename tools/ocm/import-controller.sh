#!/usr/bin/env bash
# Compiles the original import controller into bin/import-controller, from the folder of a clone of managedcluster-import-controller. It takes
# minutes with an empty build cache.
set -euo pipefail

source=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The controllers of two hubs run on one machine, and the port of the metrics is a constant: this build takes any free one.
main=$source/cmd/manager/main.go
sed 's/^var metricsPort = .*/var metricsPort = 0/' "$main" >"$work/main.go"
echo "{\"Replace\":{\"$main\":\"$work/main.go\"}}" >"$work/overlay.json"

echo "import controller: building it (the first build takes minutes)"
mkdir -p bin
GOWORK=off GOFLAGS=-mod=vendor CGO_ENABLED=0 go -C "$source" build -overlay="$work/overlay.json" -o "$PWD/bin/import-controller" ./cmd/manager
