#!/usr/bin/env bash
# Compiles operators of others into bin/operators, each at the release that the go.mod of its folder pins. A folder has the tools of
# its go.mod, or a main package, which generate.sh may write. It takes minutes for each with an empty build cache, and returns at once when
# nothing has changed. Arguments select folders.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
mkdir -p ../../bin/operators
installed=$(cd ../../bin/operators && pwd)

# The modules need their own versions, which a workspace would raise. The build needs no C compiler.
export GOWORK=off CGO_ENABLED=0
sha256=$(command -v sha256sum || echo shasum -a 256) # macOS has no sha256sum

build() { # folder package program
	go build -C "$1" -trimpath -ldflags '-s -w' -o "$installed/.$3" "$2"
	mv "$installed/.$3" "$installed/$3"
}

[[ $# -gt 0 ]] || set -- */
for folder in "$@"; do
	folder=${folder%/}
	if [[ -e $folder/generate.sh ]]; then # it embeds Godwit, of which the go command knows whether it has changed
		echo "operators: building $folder (the first build takes minutes)"
		"$folder/generate.sh"
		build "$folder" . "$folder"
		continue
	fi
	# The stamp covers everything that the bytes of the binaries depend on.
	stamp=$({ cat build.sh; find "$folder" -type f -print0 | sort -z | xargs -0 cat; go version; } | $sha256)
	[[ $(cat "$installed/$folder.stamp" 2>/dev/null) == "$stamp" ]] && continue
	if [[ -e $folder/main.go ]]; then
		echo "operators: building $folder (the first build takes minutes)"
		build "$folder" . "$folder"
	else
		for package in $(go -C "$folder" list tool); do
			echo "operators: building ${package##*/} of $folder (the first build takes minutes)"
			build "$folder" "$package" "$folder-${package##*/}"
		done
	fi
	echo "$stamp" >"$installed/$folder.stamp"
done
