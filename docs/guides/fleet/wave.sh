#!/usr/bin/env bash
# Migrates the CRDs of the clusters of a wave, one after the other, and stops at the first cluster that is not clean
# afterwards. Run the same command to resume.
#
# Usage: wave.sh FILE DIR. Each line of FILE is a context of the kubeconfig. DIR/CONTEXT gets the output of each command, for
# `godwit report -f DIR`. The variable RUN_FLAGS has more flags for `godwit crd run`, such as --max-writes-per-second=20, and
# PLAN_FLAGS for `godwit plan`: with --references=false, no webhook or role that names an old version stops a wave.
set -euo pipefail

wave=$1 evidence=$2
read -ra flags <<<"${RUN_FLAGS:-}"
read -ra looks <<<"${PLAN_FLAGS:-}"

while read -r cluster; do
	[[ -n $cluster ]] || continue
	out=$evidence/${cluster//\//_}
	mkdir -p "$out"
	stop() {
		echo "$cluster: stopped: $1"
		exit 1
	}
	godwit version --client -o json >"$out/0-version.json"
	# The first plan is the state before: a wave that is resumed keeps it. Exit code 1 means that there is work, which the
	# run does.
	[[ -s $out/1-plan.json ]] || godwit plan --contexts="$cluster" "${looks[@]}" -o json --file="$out/1-plan.json" 2>/dev/null || (($? == 1 || $? == 3)) ||
		stop "the cluster can't be read"
	code=0
	godwit crd run --all --yes --context="$cluster" -o json "${flags[@]}" >"$out/2-run.json" 2>"$wave-${cluster//\//_}.log" </dev/null ||
		code=$?
	godwit plan --contexts="$cluster" "${looks[@]}" -o json --file="$out/3-after.json" 2>/dev/null || code=$?
	((code == 0)) || stop "see godwit plan --contexts=$cluster"
	echo "$cluster: clean"
done <"$wave"
