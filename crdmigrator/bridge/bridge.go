package bridge

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/crdmigrator/advise"
	"github.com/godwit-dev/godwit/crdmigrator/releasecheck"
	"github.com/godwit-dev/godwit/internal/placeholder"
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

// Reasons are those of findings, beside those of package releasecheck.
var Reasons godwit.Catalog

// Reasons of findings, beside those of package releasecheck.
var (
	ReasonConverterNeeded = Reasons.Declare(godwit.Reason{
		Name: "ConverterNeeded", UserAction: true,
		Meaning: "The conversion webhook is that of the live release, and does not know any version of the next release.",
		Fix:     releasecheck.InstallAny(),
	})
	ReasonControllerNeeded = Reasons.Declare(godwit.Reason{
		Name:    "ControllerNeeded",
		Meaning: "The conversion webhook of the live release converts the objects.",
		Fix:     keepController(),
	})
	ReasonObjectsMayBeInvalid = Reasons.Declare(godwit.Reason{
		Name:    "ObjectsMayBeInvalid",
		Meaning: "The target version is stricter than the old one, and no webhook converts. The API server may refuse to write objects.",
		Fix:     tryEveryObject(placeholder.Name),
	})
	ReasonNextDropsFields = Reasons.Declare(godwit.Reason{
		Name:    "NextDropsFields",
		Meaning: "The next release drops fields of a version that it keeps. A skipped release may have moved their values.",
		Fix:     readReleaseNotes().Or(releasecheck.NeedNoValue()),
	})
	ReasonStepsReady = Reasons.Declare(godwit.Reason{
		Name:    "StepsReady",
		Meaning: "The API server accepts the CRD after the steps that the message names. They end what a check says of versions that the release removes.",
		Fix:     godwit.Do("write the steps with `godwit crd check --steps=DIR`, and run them"),
	})
	ReasonMigrateAfterNext = Reasons.Declare(godwit.Reason{
		Name:    "MigrateAfterNext",
		Meaning: "The next release stores another version than the one at which objects are stored before it.",
		Fix:     migrateAfterNext(placeholder.Name),
	})
)

// Kind is what a step does.
type Kind string

const (
	// Serve adds the target version, served and not stored. It also serves old versions through which the migration has to try the
	// objects, to prove that each value is kept.
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
	// Unconvert removes the conversion webhook, which the next release does not have, and of which another field manager would keep a part.
	Unconvert Kind = "Unconvert"
)

// Kinds are all kinds of steps, in their order.
var Kinds = []Kind{Serve, Store, Migrate, Unserve, Remove, Unconvert}

// Step is one step of a bridge.
type Step struct {
	Kind Kind
	// Manifest is the CRD to apply on the server side: name, group, names, scope and versions. It is nil for Migrate and Unconvert.
	Manifest *apiextensionsv1.CustomResourceDefinition
	// Patch is that of Unconvert, and nil for the others.
	Patch *godwit.Patch
}

// Bridge has the steps from a live CRD to the next one.
type Bridge struct {
	CRD    string
	Result Result
	// Target is the version at which the steps store the objects; empty without steps.
	Target string
	// RemovedVersions are the versions of the live CRD that the next release does not have.
	RemovedVersions []string
	// Steps are empty if a finding blocks.
	Steps    []Step
	Findings []godwit.Finding
}

// Release is a release that the user could install in between.
type Release struct {
	// Name identifies the release to the user, such as the name of its file.
	Name string
	CRD  *apiextensionsv1.CustomResourceDefinition
}

// Facts are all that [For] decides on.
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

// Ends reports whether the steps fix the findings that a check of the release has for this reason.
func (b Bridge) Ends(reason *godwit.Reason) bool {
	return b.Result == Ready && slices.Contains([]*godwit.Reason{
		releasecheck.ReasonStoredVersionRemoved, releasecheck.ReasonStoredAtRemovedVersion, releasecheck.ReasonManagedFieldsRemovedVersion,
	}, reason)
}

func (b *Bridge) add(f godwit.Finding) {
	b.Findings = append(b.Findings, f)
	if f.Severity == godwit.Blocks {
		b.Result = Blocked
	}
}

func blocker(reason *godwit.Reason, message string, fix godwit.Fix) godwit.Finding {
	return godwit.Finding{Severity: godwit.Blocks, Reason: reason, Message: message, Fix: fix}
}

func note(reason *godwit.Reason, message string, fix godwit.Fix) godwit.Finding {
	return godwit.Finding{Severity: godwit.Informs, Reason: reason, Message: message, Fix: fix}
}
