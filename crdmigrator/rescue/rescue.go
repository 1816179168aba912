package rescue

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/placeholder"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/walk"
)

// Annotation on a CRD has the [Journal] of a rescue that is under way or was interrupted.
const Annotation = decision.RescueAnnotation

// State says what a rescue would do.
type State string

const (
	// Healthy means that the API server reads every object and has every stored version.
	Healthy State = "Healthy"
	// Ready means that there is something to rescue, and nothing in its way.
	Ready State = "Ready"
	// Blocked means that there is something to rescue, and something in its way.
	Blocked State = "Blocked"
)

// Reasons are those of a plan and a run of a rescue.
var Reasons godwit.Catalog

// Reasons of blockers and of errors, beside those of a plan of a migration.
var (
	ReasonTerminating = Reasons.Declare(godwit.Reason{
		Name: "Terminating", UserAction: true,
		Meaning: "The CRD is being deleted, and waits for its objects, which the API server can't read.",
		Fix:     keepFinalizer(placeholder.Name),
	})
	ReasonDamagedObjects = Reasons.Declare(godwit.Reason{
		Name: "DamagedObjects", UserAction: true,
		Meaning: "Etcd has an object that the API server can't read at any version, because its bytes are damaged.",
		Fix:     decision.RestoreObject(placeholder.Name),
	})
	ReasonConverterGone = Reasons.Declare(godwit.Reason{
		Name: "ConverterGone", UserAction: true,
		Meaning: "The conversion webhook of the CRD does not convert objects, so that none is readable.",
		Fix:     bringUpOrReplace(placeholder.Name),
	})
	ReasonConverterAnswers = Reasons.Declare(godwit.Reason{
		Name: "ConverterAnswers", UserAction: true,
		Meaning: "The rescue was asked to convert without the webhook. The CRD has none, or the API server reads every object with it.",
		Fix:     rescueWithWebhook().Or(migrateWithWebhook(placeholder.Name)),
	})
	ReasonFieldsWouldBeLost = Reasons.Declare(godwit.Reason{
		Name: "FieldsWouldBeLost", UserAction: true,
		Meaning: "No webhook converts, and the storage version lacks fields that objects have. The CRD and the objects are as before.",
		Fix:     addFields(placeholder.Name, placeholder.Version),
	})
	ReasonReverted = Reasons.Declare(godwit.Reason{
		Name: "Reverted", UserAction: true,
		Meaning: "Another client, which the message names, has removed what the rescue has added to the CRD.",
		Fix:     pauseClient(placeholder.Name),
	})
	ReasonStillUnreadable = Reasons.Declare(godwit.Reason{
		Name: "StillUnreadable", UserAction: true,
		Meaning: "A client has stored objects at an old version while the rescue ended.",
		Fix:     runAgain(placeholder.Name),
	})
	ReasonOtherManifest = Reasons.Declare(godwit.Reason{
		Name: "OtherManifest", UserAction: true,
		Meaning: "The manifest is of another CRD, or does not have the missing version.",
		Fix:     useManifest().Or(useManifestOf(placeholder.Name)),
	})
	ReasonNewerFormat = format.DeclareNewer(&Reasons, "has begun a rescue of the CRD, and has stored what it changed",
		"Nothing is written.", useNewerRelease(placeholder.Name))
)

// Options tune a [Rescuer]. The zero value works.
type Options struct {
	// Policy is the policy of the rewrite.
	Policy decision.Policy
	// Limiter paces every request; nil means one of its own, with the default limits.
	Limiter *walk.Limiter
	// Attempts bounds the tries for one object; 0 means walk.DefaultAttempts.
	Attempts int
	// Manifest has the schemas of missing versions, as an old release of the CRD. A version that it lacks, and every
	// version without a manifest, keeps every field.
	Manifest *apiextensionsv1.CustomResourceDefinition
	// WithoutWebhook makes the API server convert without the conversion webhook, which is gone for good, until the objects
	// are rewritten.
	WithoutWebhook bool
	// Progress is called at each step; nil means never. It must be quick.
	Progress func(Progress)
}

// Progress says how far a rescue is.
type Progress struct {
	// Message is a line for the user; empty while objects are rewritten.
	Message string
	// Objects is the report of the rewrite so far.
	Objects decision.Report
}

// Report is what a rescue did.
type Report struct {
	// Added are the versions that were missing.
	Added []string
	// Changes are the changes that the conversion without a webhook makes.
	Changes []Change
	// Objects is the report of the last pass over the objects.
	Objects decision.Report
	// Rewritten means that every object was rewritten, and status.storedVersions trimmed.
	Rewritten bool
	// Verified means that the API server has read every object without the added versions.
	Verified bool
	// Restored means that the spec is the one from before the rescue, with the same owners.
	Restored bool
	// Others are the clients that changed the spec meanwhile.
	Others []string
}

// BlockedError says why a rescue was refused. The CRD is as it was before, unless Begun.
type BlockedError struct {
	Blocker godwit.Finding
	// Changes are the changes that a conversion would make, if they are the reason.
	Changes []Change
	// Begun means that the CRD still has what the rescue has added.
	Begun bool
}

func (e *BlockedError) Error() string {
	return e.Blocker.Line() + "; " + e.Blocker.Fix.String()
}

func blocked(reason *godwit.Reason, message string, fix godwit.Fix) *BlockedError {
	return &BlockedError{Blocker: godwit.Finding{Reason: reason, Message: message, Fix: fix}}
}

// lossError refuses a rewrite that would lose fields.
func lossError(crd *apiextensionsv1.CustomResourceDefinition, changes []Change, storage string) *BlockedError {
	var lost []string
	for _, c := range changes {
		if c.Lost {
			lost = append(lost, fmt.Sprintf("%s (%d objects, such as %s)", c.Path, c.Objects, c.Example))
		}
	}
	e := blocked(ReasonFieldsWouldBeLost,
		fmt.Sprintf("a rewrite of the objects of %s would lose fields, which %s does not have: %s", crd.Name, storage, strings.Join(lost, ", ")),
		addFields(crd.Name, storage))
	e.Changes = changes
	return e
}
