#!/usr/bin/env bash
# build.sh MINOR: compiles kube-apiserver and kube-controller-manager, at the version that MINOR/go.mod pins, into
# bin/matrix/MINOR, and links etcd and kubectl of bin/controlplane beside them. It takes minutes with an empty build cache, and
# returns at once when nothing has changed.
set -euo pipefail

minor=$1
cd "$(dirname "${BASH_SOURCE[0]}")/$minor"
bin=../../../bin/matrix
installed=$bin/$minor

# The stamp covers everything that the bytes of the binaries depend on. macOS has no sha256sum.
sha256=$(command -v sha256sum || echo shasum -a 256)
stamp=$({ cat go.mod go.sum ../build.sh; go version; } | $sha256)
if [[ $(cat "$installed/stamp" 2>/dev/null) == "$stamp" ]]; then
	exit 0
fi

# These modules need their own versions, which a workspace would raise. The build needs no C compiler.
export GOWORK=off CGO_ENABLED=0
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minorNumber _ <<<"${version#v}"

# Without these flags the server's version is v0.0.0-master+$Format:%H$, which clients can't compare. A module does not
# contain its commit; "archive" is Kubernetes' own word for a build from sources without git.
ldflags='-s -w'
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	ldflags+=" -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minorNumber"
	ldflags+=" -X $package.gitCommit=unknown -X $package.gitTreeState=archive"
done

# One rename installs binaries and stamp, so that an interrupted build never looks complete.
mkdir -p "$bin"
building=$(mktemp -d "$bin/.$minor.XXXXXX")
trap 'rm -rf "$building"' EXIT
for name in kube-apiserver kube-controller-manager; do
	echo "matrix: building $name $version (the first build takes minutes)"
	go build -trimpath -ldflags "$ldflags" -o "$building/$name" "k8s.io/kubernetes/cmd/$name"
done
ln -s ../../controlplane/{etcd,kubectl} "$building/"
echo "$stamp" >"$building/stamp"
chmod 755 "$building"
rm -rf "$installed"
mv "$building" "$installed"
echo "matrix: installed Kubernetes $version in bin/matrix/$minor"
