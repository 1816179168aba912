package remedy

import "github.com/godwit-dev/godwit/crdmigrator/doctor"

// Leftovers are the reasons of `godwit crd doctor`, which `godwit crd check` has as well.
var Leftovers = []ReasonDoc{
	{Reason: doctor.ReasonOwnerReferenceNotServed, UserAction: true,
		Meaning: "ownerReferences name a version that the API server does not serve. The garbage collector can't look up the owner: it never deletes the dependents of a deleted owner, and a deletion of the owner in the foreground waits for ever.",
		Remedy:  "Repair them with `godwit crd run`."},
	{Reason: doctor.ReasonOwnerGone, UserAction: true,
		Meaning: "ownerReferences name a version that is not served, and an owner that does not exist in the namespace. The garbage collector would delete the objects if the references named a version that is served, so a run leaves them.",
		Remedy:  "Delete the objects, or remove the references from the objects that you need. The message has both commands for one of them."},
	{Reason: doctor.ReasonWebhookNotServed, UserAction: true,
		Meaning: "A rule of a webhook configuration names a version that is not served. A webhook whose rule names no other version is not called any more once the CRD lacks the version.",
		Remedy:  "Name the storage version in the rule, if the webhook knows it. The message has the command."},
	{Reason: doctor.ReasonPolicyNotServed, UserAction: true,
		Meaning: "A rule of a ValidatingAdmissionPolicy, a MutatingAdmissionPolicy or one of their bindings names a version that is not served. A policy whose rule names no other version does not apply any more once the CRD lacks the version, and a rule that excludes requests does not exclude them any more.",
		Remedy:  "Name the storage version in the rule, if the expressions of the policy fit it. The message has the command."},
	{Reason: doctor.ReasonPolicyParametersNotServed, UserAction: true,
		Meaning: "The paramKind of an admission policy names a version that is not served. Once the CRD lacks the version, the API server can't read the parameters, and denies every request that the policy matches unless its failurePolicy is Ignore.",
		Remedy:  "Name the storage version in the paramKind, if the expressions of the policy fit it. The message has the command."},
	{Reason: doctor.ReasonRoleNotServed, UserAction: true,
		Meaning: "A rule of a ClusterRole allows a path of a version that no CRD of the API group serves.",
		Remedy:  "Replace the path. The message has the command."},
	{Reason: doctor.ReasonRoleGroupHasVersion, UserAction: true,
		Meaning: "A rule of a role has an API group with a version, such as example.com/v1. It matches no request: an API group in RBAC has no version.",
		Remedy:  "Remove the version from the API group. The message has the command, which gives the subjects the permissions that the rule is meant for."},
	{Reason: doctor.ReasonAPIServiceNotServed, UserAction: true,
		Meaning: "An APIService is of a version that no CRD of the API group serves, and no other API server serves it.",
		Remedy:  "Delete the APIService."},
	{Reason: doctor.ReasonConversionServiceNotFound, UserAction: true,
		Meaning: "The Service of the conversion webhook does not exist. The API server can't convert objects.",
		Remedy:  "Install again what has the Service. If it is gone for good, rescue the objects with `godwit crd rescue NAME --conversion=none`. If all versions have the same schema, convert without a webhook."},
	{Reason: doctor.ReasonLastAppliedNotServed, UserAction: true,
		Meaning: "Objects were applied by `kubectl apply` from manifests at a version that is not served. The next apply of these manifests fails.",
		Remedy:  "Write the storage version in the manifests, and apply them."},
}
