package bridge

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/crdmigrator/advise"
)

// Result says whether steps are needed between a live CRD and the next one.
type Result string

const (
	// NotNeeded means that the API server accepts the next CRD as it is.
	NotNeeded Result = "NotNeeded"
	// Ready means that the API server accepts the next CRD after the steps.
	Ready Result = "Ready"
	// Blocked means that there are no steps, or that they would lose fields.
	Blocked Result = "Blocked"
)

// Reasons of findings, beside those of package releasecheck.
const (
	// ReasonConverterNeeded (Blocked): neither the live release nor the API server converts objects to a version that
	// the next release has.
	ReasonConverterNeeded = "ConverterNeeded"
	// ReasonFieldsLost (Blocked): no webhook converts, and the target version lacks fields of the old version.
	ReasonFieldsLost = "FieldsLost"
	// ReasonControllerNeeded (note): the controller of the live release has to run until the migration has ended, and
	// may have to stop before a version is no longer served.
	ReasonControllerNeeded = "ControllerNeeded"
	// ReasonObjectsMayBeInvalid (note): the target version is stricter, and no webhook converts.
	ReasonObjectsMayBeInvalid = "ObjectsMayBeInvalid"
	// ReasonNextDropsFields (note): the next release drops fields of a version that stays.
	ReasonNextDropsFields = "NextDropsFields"
	// ReasonMigrateAfterNext (note): the next release stores another version, so that objects are to be migrated after
	// it, too.
	ReasonMigrateAfterNext = "MigrateAfterNext"
)

// Kind is what a step does.
type Kind string

const (
	// Serve adds the target version, served and not stored.
	Serve Kind = "Serve"
	// Store makes the target the storage version.
	Store Kind = "Store"
	// Migrate rewrites every object at the target version.
	Migrate Kind = "Migrate"
	// Unserve stops serving the versions that the next release does not have. Objects are then migrated again, which
	// removes these versions from managedFields.
	Unserve Kind = "Unserve"
	// Remove removes the versions that the next release does not have.
	Remove Kind = "Remove"
)

// Kinds are all kinds of steps, in their order.
var Kinds = []Kind{Serve, Store, Migrate, Unserve, Remove}

// Step is one step of a bridge.
type Step struct {
	Kind Kind
	// Manifest is the CRD to apply on the server side: name, group, names, scope and versions. It is nil for Migrate.
	Manifest *apiextensionsv1.CustomResourceDefinition
}

// Finding is one thing to know about a bridge.
type Finding struct {
	// Blocks means that there is no bridge because of it.
	Blocks bool
	// Reason is one of the documented constants.
	Reason string
	// Message names the CRD and the cause.
	Message string
	// Fix is what to do about it.
	Fix godwit.Fix
}

// Bridge leads from a live CRD to the next one.
type Bridge struct {
	CRD    string
	Result Result
	// Target is the version at which the steps store the objects; empty without steps.
	Target string
	// RemovedVersions are live, and not in the next release.
	RemovedVersions []string
	Steps           []Step
	Findings        []Finding
}

// Release is a release that the user could install in between.
type Release struct {
	// Name is how the user knows it, as the name of its file.
	Name string
	CRD  *apiextensionsv1.CustomResourceDefinition
}

// Facts are what a bridge is decided on.
type Facts struct {
	// Live is the CRD of the cluster, with its status; nil if the cluster has none.
	Live *apiextensionsv1.CustomResourceDefinition
	// Next is the CRD of the next release.
	Next *apiextensionsv1.CustomResourceDefinition
	// Between are releases whose controllers the user could run in between.
	Between []Release
	// Answers say which values are needed, by path, as for package advise.
	Answers map[string]advise.Answer
}

func (b *Bridge) add(f Finding) {
	b.Findings = append(b.Findings, f)
	if f.Blocks {
		b.Result = Blocked
	}
}
