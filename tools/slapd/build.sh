#!/usr/bin/env bash
# Provides slapd, OpenLDAP's server, for the tests of external names. It uses an installed one. Where there is none, it downloads
# Debian's packages and unpacks them into bin/slapd, which changes nothing of the system. It returns at once when that is done.
#
# Without slapd the tests that need it are skipped and say so. With CI=true that is a failure.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
bin=../../bin
installed=$bin/slapd

missing() {
	echo "slapd: $*: tests on a directory server are skipped. Install slapd: apt-get install slapd" >&2
	[[ ${CI:-} != true ]]
	exit
}

if PATH=$PATH:/usr/sbin:/usr/local/libexec command -v slapd >/dev/null || [[ -x $installed/usr/sbin/slapd ]]; then
	exit 0
fi
command -v apt-get >/dev/null && command -v dpkg >/dev/null || missing "not installed, and this is not Debian"

# One rename installs everything, so that an interrupted download never looks complete.
mkdir -p "$bin"
unpacking=$(mktemp -d "$bin/.slapd.XXXXXX")
trap 'rm -rf "$unpacking"' EXIT

# The libraries beside it have other names in each release of Debian. libc comes with the system, libperl is for a backend.
libraries=$(apt-cache depends --important slapd 2>/dev/null | sed -n 's/^ *Depends: \(lib[a-z0-9.+-]*\)$/\1/p' | grep -vE '^lib(c6|crypt1|perl)' || true)
[[ -n $libraries ]] || missing "apt knows no slapd (apt-get update may help)"
echo "slapd: downloading slapd" $libraries
(
	cd "$unpacking"
	# apt warns that it does not drop its privileges for a folder that its own user can't read.
	apt-get download -qq slapd $libraries 2>apt.log || { cat apt.log >&2; exit 1; }
	for package in *.deb; do dpkg -x "$package" root; done
) || missing "the download failed"
chmod 755 "$unpacking/root"
rm -rf "$installed"
mv "$unpacking/root" "$installed"
echo "slapd: unpacked $(readlink -f "$installed")"
