#!/usr/bin/env bash
# Installs Apache Kafka, as pom.xml pins it, into bin/kafka: the jars of Maven Central, each with the checksum of
# jars.sha256. It needs Maven once, and the broker needs Java 17 or later. It returns at once when that is done.
#
# Without Java the tests that need the broker are skipped and say so. With CI=true that is a failure.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
bin=../../bin
installed=$bin/kafka

missing() {
	echo "kafka: $*: tests on a real broker are skipped" >&2
	[[ ${CI:-} != true ]]
	exit
}

sha256=$(command -v sha256sum || echo shasum -a 256)
stamp=$(cat pom.xml jars.sha256 | $sha256)
if [[ $(cat "$installed/stamp" 2>/dev/null) == "$stamp" ]]; then
	exit 0
fi
command -v java >/dev/null || missing "no java in PATH. Install Java 17 or later: apt-get install openjdk-17-jre-headless"
command -v mvn >/dev/null || missing "no mvn in PATH. Install Maven: apt-get install maven"

# One rename installs everything, so that an interrupted download never looks complete.
mkdir -p "$bin"
downloading=$(mktemp -d "$bin/.kafka.XXXXXX")
trap 'rm -rf "$downloading"' EXIT
echo "kafka: downloading the jars of pom.xml from Maven Central (40 MB)"
if ! mvn --quiet --batch-mode --strict-checksums dependency:copy-dependencies \
	"-DoutputDirectory=$(cd "$downloading" && pwd)/jars" >"$downloading/maven.log"; then
	cat "$downloading/maven.log" >&2
	missing "the download failed"
fi
rm "$downloading/maven.log"

# Checksums of a registry only show that nothing was lost on the way. These show that the jars are the ones that were reviewed.
(cd "$downloading/jars" && $sha256 *.jar) | LC_ALL=C sort -k 2 | diff jars.sha256 - >&2 || {
	echo "kafka: the jars are not those of jars.sha256 (< pinned, > downloaded)" >&2
	exit 1
}
echo "$stamp" >"$downloading/stamp"
chmod 755 "$downloading"
rm -rf "$installed"
mv "$downloading" "$installed"
echo "kafka: installed Apache Kafka in bin/kafka"
