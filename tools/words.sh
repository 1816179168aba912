#!/usr/bin/env bash
# Fails on words that stand for something that has another name here: one thing has one word, in code and in text.
#
# In Go, golangci-lint's misspell finds the words that stand alone: in comments, strings and names. They are listed in
# .golangci.yml (extra-words), from which the words within camelCase names are taken.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Text: a regular expression of whole words, any case, and what to write instead. A word in backticks is quoted: it is
# the name that another project uses, such as the propagation policy `orphan`, or a former one. Orphan, so written, is the
# value of fields of Kubernetes and of Open Cluster Management.
#
# Words that are not banned, since their proper use cannot be told from the other: "silent" (of an API server whose lease is
# stale), "holder" (of a Lease, whose field is holderIdentity; of a reference it is the referrer), "give up" and "take over".
banned=(
	'the house => architecture'
	'sightings? => lease history'
	'untold => inconclusive'
	'yards?|meals? => namespace, cluster'
	'somebody|nobody|everybody|whoever => name the actor: the user, another client, the controller'
	'rehears(e|es|ed|al|als|ing) => preflight'
	'census(es)? => reference index, inventory'
	'heirs?|successors? => replacement, new revision'
	'stash(es|ed|ing)? => ControllerRevision, old revision'
	'judge(s|d|ment|ments)?|judgements?|verdicts?|rulings? => decide, decision'
	'definitions? => CRD'
	'(?-i:orphan(s|ed)?|Orphan(s|ed)) => unreferenced, unmanaged'
	'(go|goes|gone|going|went) on => resume, continue'
	'mend(s|ed|ing)?|cur(e|es|ed) => fix'
	'wish(es)? => request'
	'patience => attempt, retry'
	'ledgers? => byte window'
	'surveys? => inventory'
	'strand(s|ed|ing)? => unsafe, unreadable'
	'speaks? => is stored at, uses'
)

# Messages and help, as kubectl would say them: in text, and in the strings of Go, but for those of tests. The pattern is that of
# banned. A table entry that is missing here cannot be told from proper use.
messages=(
	'do not ask => skip the confirmation prompt'
	'which [a-z -]+\? (give|specify) => specify --namespace or --all-namespaces'
	'(give|choose) [^.;]{1,60}, one of them => X and Y are mutually exclusive; specify X or Y'
	'there is no (customresourcedefinition|managedcluster\w*|controllerrevision|secret|namespace) [^ ]*[%A-Z] => X not found on Y'
	'(is|are) of no => does not define'
	'(is|are|was|were) asked for => requested'
	'is there twice => lists X twice, occurs twice'
	'(?<!there )(is|are) no (?!longer|more)\w+ => is not an X, is not a valid X'
	'what names => references to'
	'name books? => file of saved names'
	'give it one => add one'
	', as where => possibly because'
	'(?-i:Rights) => Permissions'
)

# Functions and methods are verbs that say the effect, or predicates. These names say nothing: "look" is a scan or a connection, "say" and "tell"
# print, log, report or announce, "those" and "at" select, and "move" is an update or a migration.
functions='[lL]ook([A-Z]\w*)?|[sS]ays?([A-Z]\w*)?|[tT]ells?([A-Z]\w*)?|told|[tT]hose|[aA]t|move((?!Command)[A-Z]\w*)?|nothingLeft|conclude|offer|sightings?'

# text lists what people read besides Go. Help texts are in it by the generated docs/reference/cli.md. A test of `godwit cluster
# preflight` has the names of other projects and of the JSON contract, in which nothing can be in backticks.
text() {
	git ls-files --cached --others --exclude-standard -- '*.md' '*.js' '*.yaml' '*.yml' '*.txtar' '*.txt' '*.tpl' '*.gotmpl' '*.sh' Makefile Dockerfile |
		grep -vxE 'tools/words\.sh|\.golangci\.yml|cmd/godwit/testdata/cluster/preflight\.txtar|test/state/v[0-9.]+/.*'
}

# camel is a regular expression that finds a word as a part of a camelCase name. CustomResourceDefinition is the name of
# the kind, and buildDefinition a field of SLSA's provenance.
camel() { # word
	local title=${1^}
	echo "(?<![A-Za-z])$1(?=[A-Z])|(?<=[a-z0-9])(?<!CustomResource)(?<![bB]uild)$title(?![a-z])|(?<![A-Za-z])$title(?=[A-Z])"
}

extra_words() {
	sed -n 's/^ *- {typo: \([a-z]*\), .*/\1/p' .golangci.yml
}

check() {
	local found=0 entry word patterns=()
	for entry in "${banned[@]}" "${messages[@]}"; do
		if text | xargs grep -nHiP "(?<!\`)\b(${entry% => *})\b(?!\`)"; then
			echo "words: write instead: ${entry#* => }" >&2
			found=1
		fi
	done
	for entry in "${messages[@]}"; do
		if git grep -niP "^[^/]*\"[^\"]*\b(${entry% => *})\b" -- '*.go' ':!*_test.go'; then
			echo "words: write instead: ${entry#* => }" >&2
			found=1
		fi
	done
	if git grep -nP "^func (\([^)]*\) )?($functions)[\[(]" -- '*.go' ':!*_test.go'; then
		echo "words: a function is named after its effect, such as print, log, report, scan, is…, has…, needs…" >&2
		found=1
	fi
	while read -r word; do patterns+=("$(camel "$word")"); done < <(extra_words)
	if ((${#patterns[@]})) && git grep -nP "$(IFS='|' && echo "${patterns[*]}")" -- '*.go'; then
		echo "words: .golangci.yml says what to write instead (misspell, extra-words)" >&2
		found=1
	fi
	return "$found"
}

check
