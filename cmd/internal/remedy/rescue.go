package remedy

import "github.com/godwit-dev/godwit/crdmigrator/rescue"

// Rescues are the reasons for which a rescue is refused, beside those of CRDs.
var Rescues = []ReasonDoc{
	{Reason: rescue.ReasonDamagedObjects, UserAction: true,
		Meaning: "Etcd has an object that the API server can't read at any version, because its bytes are damaged.",
		Remedy:  "Restore the object that the message names from a backup, or delete its key from etcd."},
	{Reason: rescue.ReasonConverterGone, UserAction: true,
		Meaning: "The conversion webhook of the CRD does not convert objects, so that none is readable.",
		Remedy:  "Bring the webhook up. If it is gone for good, run `godwit crd rescue --conversion=none`."},
	{Reason: rescue.ReasonConverterAnswers, UserAction: true,
		Meaning: "The rescue was asked to convert without the webhook. The CRD has none, or the API server reads every object with it.",
		Remedy:  "Run without `--conversion=none`, or migrate with the webhook: `godwit crd run`."},
	{Reason: rescue.ReasonFieldsWouldBeLost, UserAction: true,
		Meaning: "No webhook converts, and the storage version lacks fields that objects have. The CRD and the objects are as before.",
		Remedy:  "Add the fields to the schema of the storage version for the time of the rescue, or have it keep unknown fields."},
	{Reason: rescue.ReasonReverted, UserAction: true,
		Meaning: "Another client, which the message names, has removed what the rescue has added to the CRD.",
		Remedy:  "Pause that client, run the rescue again, and resume the client afterwards."},
	{Reason: rescue.ReasonStillUnreadable, UserAction: true,
		Meaning: "A client has stored objects at an old version while the rescue ended.",
		Remedy:  "Run the rescue again. If it lasts, see which API server still uses an old spec of the CRD."},
	{Reason: rescue.ReasonNewerFormat, UserAction: true,
		Meaning: "A newer release of Godwit has begun a rescue of the CRD, and has stored what it changed in a format that this release does not read. Nothing is written.",
		Remedy:  "Have that release, or a newer one, finish the rescue, or undo it with `--undo`."},
	{Reason: rescue.ReasonOtherManifest, UserAction: true,
		Meaning: "The manifest is of another CRD, or does not have the missing version.",
		Remedy:  "Give the manifest of a release that has the version, or none: the version then keeps every field."},
}
