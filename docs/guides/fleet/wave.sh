#!/usr/bin/env bash
# Migrates the CRDs of the clusters of a wave, one after the other. It stops at the first cluster whose CRDs are not clean
# afterwards, or where the plan has a row that is Blocked or that was not read. Run the same command to resume.
#
# Usage: wave.sh FILE DIR. Each line of FILE is a context of the kubeconfig. DIR/CONTEXT gets the output of each command, for
# `godwit report -f DIR`. The variable RUN_FLAGS has more flags for `godwit crd run`, such as --max-writes-per-second=20, and
# PLAN_FLAGS for `godwit plan`: with --references=false, the wave does not look for references to old versions.
set -euo pipefail

wave=$1 evidence=$2
read -ra flags <<<"${RUN_FLAGS:-}"
read -ra looks <<<"${PLAN_FLAGS:-}"

while read -r cluster || [[ -n $cluster ]]; do # the last line may have no line break
	[[ -n $cluster ]] || continue
	out=$evidence/${cluster//\//_}
	mkdir -p "$out"
	stop() {
		echo "$cluster: stopped: $1"
		exit 1
	}
	godwit version --client -o json >"$out/0-version.json"
	# The first plan is the state before: a wave that is resumed keeps it. Exit code 1 means that there is work, which the
	# run does, and 3 that something blocks it. A plan of what was not read is not a state.
	if [[ ! -s $out/1-plan.json ]]; then
		before=0
		godwit plan --contexts="$cluster" "${looks[@]}" -o json --file="$out/1-plan.json" 2>/dev/null </dev/null || before=$?
		((before == 0 || before == 1 || before == 3)) || {
			rm -f "$out/1-plan.json"
			stop "not all of it can be read: see godwit plan --contexts=$cluster"
		}
	fi
	ran=0 after=0
	godwit crd run --all --yes --context="$cluster" -o json "${flags[@]}" >"$out/2-run.json" 2>"$wave-${cluster//\//_}.log" </dev/null ||
		ran=$?
	godwit plan --contexts="$cluster" "${looks[@]}" -o json --file="$out/3-after.json" 2>/dev/null </dev/null || after=$?
	((ran == 0 && after <= 1)) || stop "see godwit plan --contexts=$cluster"
	if ((after == 0)); then
		echo "$cluster: clean"
	elif godwit crd plan --context="$cluster" --preflight=false >/dev/null 2>&1 </dev/null; then
		# The rows that are Ready are not of CRDs, such as References of a role that names an old version beside the new one:
		# nothing is in their way, and the CRDs of the clusters after this one need not wait for them.
		echo "$cluster: the CRDs are clean; for the rest see godwit plan --contexts=$cluster"
	else
		stop "see godwit plan --contexts=$cluster"
	fi
done <"$wave"
