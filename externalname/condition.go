package externalname

import "github.com/godwit-dev/godwit"

// ConditionReasons has the reasons of the conditions that providers set with package crossplane.
var ConditionReasons godwit.Catalog

// Reasons of conditions.
var (
	ReasonDiffers = ConditionReasons.Declare(godwit.Reason{
		Name: "Differs", UserAction: true,
		Meaning: "The external resource differs from spec.forProvider.",
		Fix:     godwit.Do("correct spec.forProvider").Or(godwit.Do("allow Update in spec.managementPolicies, which changes the external resource")),
	})
	ReasonInSync = ConditionReasons.Declare(godwit.Reason{
		Name:    "InSync",
		Meaning: "The external resource is as spec.forProvider says.",
		Fix:     godwit.Do("nothing is left to do"),
	})
	ReasonUpdated = ConditionReasons.Declare(godwit.Reason{
		Name:    "Updated",
		Meaning: "The external resource was updated, and not observed since.",
		Fix:     godwit.Do("wait for the next reconcile"),
	})
	ReasonShared = ConditionReasons.Declare(godwit.Reason{
		Name: "Shared", UserAction: true,
		Meaning: "Another managed resource has the same external name, so that both write one external resource.",
		Fix:     godwit.Do("set spec.managementPolicies of one of the two to Observe, or correct its external name"),
	})
	ReasonDeletionRefused = ConditionReasons.Declare(godwit.Reason{
		Name: "DeletionRefused", UserAction: true,
		Meaning: "The managed resource is being deleted, and another one has its external name. Its external resource is not deleted: the other one would lose it, and create another.",
		Fix: godwit.Do("leave the external resource to the other one: set spec.managementPolicies of this one to Observe").
			Or(godwit.Do("correct the external name of the other one, or set its spec.managementPolicies to Observe")),
	})
	ReasonUnique = ConditionReasons.Declare(godwit.Reason{
		Name:    "Unique",
		Meaning: "No other managed resource has the external name any more.",
		Fix:     godwit.Do("nothing is left to do"),
	})
)
