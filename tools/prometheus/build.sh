#!/usr/bin/env bash
# Compiles prometheus and promtool, at the version that go.mod pins, into bin/prometheus. It takes minutes with an empty
# build cache, and returns at once when nothing has changed.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
bin=../../bin
installed=$bin/prometheus

# The stamp covers everything that the bytes of the binaries depend on. macOS has no sha256sum.
sha256=$(command -v sha256sum || echo shasum -a 256)
stamp=$({ cat go.mod go.sum build.sh; go version; } | $sha256)
if [[ $(cat "$installed/stamp" 2>/dev/null) == "$stamp" ]]; then
	exit 0
fi

# The module needs its own versions, which a workspace would raise. The build needs no C compiler.
export GOWORK=off CGO_ENABLED=0
module=$(go list -m -f '{{.Version}}' github.com/prometheus/prometheus)
version=3.${module#v0.3} # v0.314.0 of the module is Prometheus 3.14.0
ldflags="-s -w -X github.com/prometheus/common/version.Version=$version"

# One rename installs binaries and stamp, so that an interrupted build never looks complete. Without the tags, the build has
# the service discovery of every cloud; the tests need that of Kubernetes, and static targets.
mkdir -p "$bin"
building=$(mktemp -d "$bin/.prometheus.XXXXXX")
trap 'rm -rf "$building"' EXIT
for name in prometheus promtool; do
	echo "prometheus: building $name (the first build takes minutes)"
	go build -trimpath -tags remove_all_sd,enable_kubernetes_sd -ldflags "$ldflags" -o "$building/$name" "github.com/prometheus/prometheus/cmd/$name"
done
echo "$stamp" >"$building/stamp"
chmod 755 "$building"
rm -rf "$installed"
mv "$building" "$installed"
echo "prometheus: installed Prometheus $version in bin/prometheus"
