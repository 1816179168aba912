package rescue

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/walk"
)

// Annotation on a CRD has the [Journal] of a rescue that is under way or was interrupted.
const Annotation = storageversion.RescueAnnotation

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

// Reasons of blockers and of errors, beside those of package storageversion.
const (
	// ReasonDamagedObjects means that etcd has an object that is not readable at any version.
	ReasonDamagedObjects = "DamagedObjects"
	// ReasonConverterGone means that the conversion webhook does not answer, and that the user has not said that it is
	// gone for good.
	ReasonConverterGone = "ConverterGone"
	// ReasonConverterAnswers means that the user wants no conversion, and the conversion webhook answers.
	ReasonConverterAnswers = "ConverterAnswers"
	// ReasonFieldsWouldBeLost means that the storage version lacks fields that objects have.
	ReasonFieldsWouldBeLost = "FieldsWouldBeLost"
	// ReasonReverted means that another client has removed what the rescue has added.
	ReasonReverted = "Reverted"
	// ReasonStillUnreadable means that objects were written at the old version again.
	ReasonStillUnreadable = "StillUnreadable"
	// ReasonOtherManifest means that the manifest of the user is of another CRD, or lacks the missing version.
	ReasonOtherManifest = "OtherManifest"
	// ReasonNewerFormat means that a newer release of Godwit has begun the rescue.
	ReasonNewerFormat = "NewerFormat"
)

// Options tune a [Rescuer]. The zero value works.
type Options struct {
	// Policy is that of the rewrite.
	Policy storageversion.Policy
	// Limiter paces every request; nil means one of its own, with the default limits.
	Limiter *walk.Limiter
	// Attempts bounds the tries for one object; 0 means walk.DefaultAttempts.
	Attempts int
	// Manifest has the schemas of missing versions, as an old release of the CRD. A version that it lacks, and every
	// version without a manifest, keeps every field.
	Manifest *apiextensionsv1.CustomResourceDefinition
	// WithoutWebhook has the API server convert without the conversion webhook, which is gone for good, until the objects
	// are rewritten.
	WithoutWebhook bool
	// Progress is called at each step; nil means never. It must be quick.
	Progress func(Progress)
}

// Progress is where a rescue is.
type Progress struct {
	// Message is a line for the user; empty while objects are rewritten.
	Message string
	// Objects is the report of the rewrite so far.
	Objects storageversion.Report
}

// Report is what a rescue did.
type Report struct {
	// Added are the versions that were missing.
	Added []string
	// Changes are what the conversion without a webhook changes.
	Changes []Change
	// Objects is the report of the last pass over the objects.
	Objects storageversion.Report
	// Rewritten means that every object was rewritten, and status.storedVersions trimmed.
	Rewritten bool
	// Verified means that the API server has read every object without the added versions.
	Verified bool
	// Restored means that the spec is what it was before, and belongs to the same owners.
	Restored bool
	// Others are the clients that changed the spec meanwhile.
	Others []string
}

// BlockedError says why a rescue was refused. The CRD is as it was before, unless Begun.
type BlockedError struct {
	Blocker godwit.Blocker
	// Changes are what a conversion would change, where that is the reason.
	Changes []Change
	// Begun means that the CRD still has what the rescue has added.
	Begun bool
}

func (e *BlockedError) Error() string {
	return e.Blocker.Reason + ": " + e.Blocker.Message + "; " + e.Blocker.Fix.String()
}

func blocked(reason, message string, fix godwit.Fix) *BlockedError {
	return &BlockedError{Blocker: godwit.Blocker{Reason: reason, Message: message, Fix: fix}}
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
		godwit.Do(fmt.Sprintf("add the fields to the schema of %s, or x-kubernetes-preserve-unknown-fields to the object that has them", storage),
			godwit.Edit{Object: godwit.Object{Resource: "crd", Name: crd.Name}}))
	e.Changes = changes
	return e
}
