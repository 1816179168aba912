#!/usr/bin/env bash
# Provides what a node of Kubernetes needs, in bin/node: kubelet, kube-proxy and kube-scheduler, at the version of the control
# plane; containerd, at the version that go.mod pins; and runc, iptables and CNI plugins, of which it uses installed ones. Where
# one of them is missing, it downloads Debian's packages and unpacks them into bin/node/debian, which changes nothing of the system.
# It takes minutes with an empty build cache, and returns at once when nothing has changed.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
bin=../../bin
installed=$bin/node

fail() {
	echo "node: $*" >&2
	exit 1
}

[[ $(uname -s) == Linux ]] || fail "a node needs Linux"

# The stamp covers everything that the bytes of the binaries depend on.
stamp=$({ cat go.mod go.sum build.sh ../controlplane/{go.mod,go.sum}; go version; } | sha256sum)
if [[ $(cat "$installed/stamp" 2>/dev/null) == "$stamp" ]]; then
	exit 0
fi

# These modules need their own versions, which a workspace would raise. The build needs no C compiler.
export GOWORK=off CGO_ENABLED=0
version=$(go -C ../controlplane list -m -f '{{.Version}}' k8s.io/kubernetes)
containerd=$(go list -m -f '{{.Version}}' github.com/containerd/containerd/v2)
IFS=. read -r major minor _ <<<"${version#v}"

# As in tools/controlplane/build.sh: without these flags, a kubelet says that it is v0.0.0.
ldflags='-s -w'
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	ldflags+=" -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"
	ldflags+=" -X $package.gitCommit=unknown -X $package.gitTreeState=archive"
done

# One rename installs everything, so that an interrupted build never looks complete.
mkdir -p "$bin"
building=$(cd "$bin" && mktemp -d "$PWD/.node.XXXXXX")
trap 'rm -rf "$building"' EXIT

for name in kubelet kube-proxy kube-scheduler; do
	echo "node: building $name (the first build takes minutes)"
	go build -C ../controlplane -trimpath -ldflags "$ldflags" -o "$building/$name" "k8s.io/kubernetes/cmd/$name"
done
for name in containerd containerd-shim-runc-v2 ctr; do
	echo "node: building $name (the first build takes minutes)"
	go build -trimpath -ldflags '-s -w' -o "$building/$name" "github.com/containerd/containerd/v2/cmd/$name"
done

# unpack downloads packages of Debian, and what they need beside libc, and unpacks them.
unpack() {
	command -v apt-get >/dev/null && command -v dpkg >/dev/null || fail "install $*: this is not Debian, whose packages could be unpacked"
	local all lists=()
	if ! apt-cache show "$1" >/dev/null 2>&1; then # a new machine has no lists: load them, beside those of the system
		mkdir -p "$building"/apt/{lists,cache}/partial "$building/apt/cache/archives/partial"
		lists=(-o "Dir::State::Lists=$building/apt/lists" -o "Dir::Cache=$building/apt/cache")
		apt-get "${lists[@]}" update -qq || fail "apt can't load its lists"
	fi
	all=$(apt-cache "${lists[@]}" depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances "$@" |
		grep -o '^[a-z0-9][a-z0-9.+-]*' | sort -u | grep -vE '^(libc6|libgcc-s1|libcrypt1|gcc-[0-9]+-base|netbase)$') || fail "apt knows no $*"
	echo "node: downloading" $all
	mkdir "$building/packages"
	(
		cd "$building/packages"
		# apt warns that it does not drop its privileges for a folder that its own user can't read.
		apt-get "${lists[@]}" download -qq $all 2>apt.log || { cat apt.log >&2; exit 1; }
		for package in *.deb; do dpkg -x "$package" "$building/debian"; done
	) || fail "the download of Debian's packages failed (apt-get update may help)"
	rm -rf "$building/packages" "$building/apt"
	# An installation of the package makes these links.
	for name in {ip,ip6}tables{,-save,-restore}; do
		ln -sf xtables-nft-multi "$building/debian/usr/sbin/$name"
	done
}
found() { PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null; }
if ! found runc || ! found iptables || [[ ! -x /usr/lib/cni/bridge ]]; then
	unpack runc containernetworking-plugins iptables
fi

echo "$stamp" >"$building/stamp"
chmod 755 "$building"
rm -rf "$installed"
mv "$building" "$installed"
echo "node: installed kubelet $version and containerd $containerd in bin/node"
