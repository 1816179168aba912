#!/usr/bin/env bash
# Writes main.go: the manager of the release that go.mod pins, with Godwit's migrator in place of its own, which is a change of one line.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
from=$(GOWORK=off GOFLAGS=-mod=mod go list -m -f '{{.Dir}}' sigs.k8s.io/cluster-api)/core/main.go
sed 's|"sigs.k8s.io/cluster-api/controllers/crdmigrator"|"github.com/godwit-dev/godwit/crdmigrator"|' "$from" >main.go.new
changed=$(diff "$from" main.go.new | grep -c '^>' || true)
[[ $changed == 1 ]] || { echo "generate.sh: $changed lines of $from differ, want one" >&2; exit 1; }
cmp -s main.go.new main.go && rm main.go.new || mv main.go.new main.go
