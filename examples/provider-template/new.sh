#!/bin/sh
# new.sh DIR MODULE makes a provider in a new folder: a copy of this template with another module path.
set -eu
if [ $# -ne 2 ]; then
	echo "usage: new.sh DIR MODULE" >&2
	exit 2
fi
if [ -e "$1" ]; then
	echo "new.sh: $1 exists" >&2
	exit 1
fi
cp -R "$(dirname "$0")" "$1"
cd "$1"
rm -f new.sh README.md
find . -name '*.go' -exec sed -i.bak "s|example.com/provider-records|$2|" {} +
find . -name '*.bak' -exec rm {} +
godwit=github.com/godwit-dev/godwit
go mod edit -module="$2" -dropreplace=$godwit -dropreplace=$godwit/externalname/crossplane \
	-droprequire=$godwit -droprequire=$godwit/externalname/crossplane
echo "Next: cd $1 && go mod tidy && go generate ./... && go test ./..."
