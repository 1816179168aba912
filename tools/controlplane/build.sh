#!/usr/bin/env bash
# Compiles etcd, kube-apiserver, kube-controller-manager and kubectl, at the versions that go.mod pins, into
# bin/controlplane. It takes minutes with an empty build cache, and returns at once when nothing has changed.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
bin=../../bin
installed=$bin/controlplane

assets=${KUBEBUILDER_ASSETS:-}
if [[ -n $assets && -x $assets/etcd && -x $assets/kube-apiserver ]]; then
	echo "controlplane: KUBEBUILDER_ASSETS names a control plane in $assets: nothing to build"
	exit 0
fi

# The stamp covers everything that the bytes of the binaries depend on. macOS has no sha256sum.
sha256=$(command -v sha256sum || echo shasum -a 256)
stamp=$({ cat go.mod go.sum build.sh; go version; } | $sha256)
if [[ $(cat "$installed/stamp" 2>/dev/null) == "$stamp" ]]; then
	exit 0
fi

# These modules need their own versions, which a workspace would raise. The build needs no C compiler.
export GOWORK=off CGO_ENABLED=0
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<<"${version#v}"

# Without these flags the server's version is v0.0.0-master+$Format:%H$, which clients can't compare. A module does not
# contain its commit; "archive" is Kubernetes' own word for a build from sources without git.
ldflags='-s -w'
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	ldflags+=" -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"
	ldflags+=" -X $package.gitCommit=unknown -X $package.gitTreeState=archive"
done

# One rename installs binaries and stamp, so that an interrupted build never looks complete.
mkdir -p "$bin"
building=$(mktemp -d "$bin/.controlplane.XXXXXX")
trap 'rm -rf "$building"' EXIT
build() { # name package
	echo "controlplane: building $1 (the first build takes minutes)"
	go build -trimpath -ldflags "$ldflags" -o "$building/$1" "$2"
}
build etcd go.etcd.io/etcd/server/v3
build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
build kube-controller-manager k8s.io/kubernetes/cmd/kube-controller-manager
build kubectl k8s.io/kubernetes/cmd/kubectl # the guides use it
echo "$stamp" >"$building/stamp"
chmod 755 "$building"
rm -rf "$installed"
mv "$building" "$installed"
echo "controlplane: installed Kubernetes $version in bin/controlplane"
