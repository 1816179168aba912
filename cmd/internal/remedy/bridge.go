package remedy

import "github.com/godwit-dev/godwit/crdmigrator/bridge"

// Bridges are the findings between a live CRD and that of a later release, beside those of a check.
var Bridges = []ReasonDoc{
	{Reason: bridge.ReasonConverterNeeded, UserAction: true,
		Meaning: "The conversion webhook is that of the live release, and does not know any version of the next release.",
		Remedy:  "Install a release in between, whose CRD has both versions, with its controller. Migrate, and make the bridge again."},
	{Reason: bridge.ReasonFieldsLost, UserAction: true,
		Meaning: "No webhook converts, and the target version lacks fields of the old version. A migration would lose their values.",
		Remedy:  "Install a release in between that converts by a webhook; or say with `--answer=PATH=Unused` that no value is needed."},
	{Reason: bridge.ReasonControllerNeeded,
		Meaning: "The conversion webhook of the live release converts the objects.",
		Remedy:  "Run the controller of the live release until the migration has ended. Stop it before a version that it uses is no longer served."},
	{Reason: bridge.ReasonObjectsMayBeInvalid,
		Meaning: "The target version is stricter than the old one, and no webhook converts. The API server may refuse to write objects.",
		Remedy:  "See which objects it refuses: `godwit crd run --dry-run=server`. Correct them, or run a release in between that converts."},
	{Reason: bridge.ReasonNextDropsFields,
		Meaning: "The next release drops fields of a version that it keeps. A skipped release may have moved their values.",
		Remedy:  "Read the release notes of the skipped releases. Install the one that moves the values first."},
	{Reason: bridge.ReasonMigrateAfterNext,
		Meaning: "The next release stores another version than the bridge.",
		Remedy:  "Run `godwit crd run` once the controller of the next release is up."},
}
