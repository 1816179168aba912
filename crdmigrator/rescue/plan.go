package rescue

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quote"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// causeBytes leaves room for a key of etcd before the version that the API server names last.
const causeBytes = 800

// Facts are what was read about one CRD. They are all that [PlanFor] decides on.
type Facts struct {
	CRD     *apiextensionsv1.CustomResourceDefinition
	Journal Journal
	// Newer is set if the journal was not read because a newer release wrote it.
	Newer *BlockedError
	// Objects is the number of objects that were listed.
	Objects int64
	// Unreachable are those of another scope than the CRD.
	Unreachable decision.Unreachable
	// List is the API server's answer to a list of all objects; nil if it listed them.
	List error
	// Denied are the permissions that a rescue needs and the user lacks.
	Denied []decision.Grant
	// User is the user's name, as the API server authenticates the user; set with Denied.
	User string
}

// Plan is what a rescue would do. It is a value, decided by [PlanFor].
type Plan struct {
	Name           string
	State          State
	StorageVersion string
	StoredVersions []string
	// Missing are the versions that the rescue adds. It may find others when it reads the objects.
	Missing []string
	// Permissive are the missing versions without a schema in the manifest, which keep every field.
	Permissive []string
	// Objects is the number of objects; nil if the API server does not list them.
	Objects *int64
	// WithoutWebhook means that the API server will convert without the conversion webhook, if the webhook does not convert.
	WithoutWebhook bool
	// Unserved are the versions that are then not served during the rescue.
	Unserved []string
	// Resumes means that an earlier rescue was interrupted.
	Resumes bool
	// Cause is what the API server says about the objects.
	Cause string
	// Reverted are the changes of an interrupted rescue that another client has removed, and Owners are the managers that own
	// the spec.
	Reverted, Owners []string
	Blockers         []godwit.Finding
}

// PlanFor decides whether there is something to rescue. It is pure.
func PlanFor(f Facts, o Options) Plan {
	crd := f.CRD
	p := Plan{
		Name: crd.Name, State: Healthy, StorageVersion: kube.StorageVersion(crd),
		StoredVersions: slices.Clone(crd.Status.StoredVersions), Missing: missing(crd, f.List), Resumes: !f.Journal.IsZero(),
	}
	if f.Newer != nil {
		p.State, p.Blockers = Blocked, []godwit.Finding{f.Newer.Blocker}
		return p
	}
	answer := apierror.Of(f.List)
	if f.List == nil {
		p.Objects = new(f.Objects)
	} else {
		p.Cause = quote.Clip(strings.Join(strings.Fields(answer.Message), " "), causeBytes)
	}
	if f.healthy(p) && !o.WithoutWebhook {
		return p
	}
	switch {
	case p.Resumes:
		p.Missing = f.Journal.Added
		p.WithoutWebhook, p.Unserved = f.Journal.Conversion != nil, f.Journal.Unserved
		if lost := f.Journal.lost(crd); len(lost) > 0 && !f.Journal.Restored {
			p.Reverted, p.Owners = lost, ownersOfVersions(crd)
		}
	case o.WithoutWebhook && kube.Converts(crd):
		p.WithoutWebhook, p.Unserved = true, otherServed(crd.Spec)
	}
	for _, v := range p.Missing {
		if o.Manifest == nil || versionIndex(o.Manifest.Spec, v) < 0 {
			p.Permissive = append(p.Permissive, v)
		}
	}
	p.Blockers = p.blockers(f, o, answer)
	p.State = Ready
	if len(p.Blockers) > 0 {
		p.State = Blocked
	}
	return p
}

// healthy reports whether there is nothing to rescue.
func (f Facts) healthy(p Plan) bool {
	return !p.Resumes && len(p.Missing) == 0 && f.List == nil && f.Unreachable.Objects == 0 && f.CRD.DeletionTimestamp == nil && kube.Serves(f.CRD, p.StorageVersion)
}

// missing are the versions that the spec lacks although objects are stored at them, as the status and the API server say.
func missing(crd *apiextensionsv1.CustomResourceDefinition, list error) []string {
	all := slices.Clone(crd.Status.StoredVersions)
	if v := apierror.Of(list).StoredVersion; v != "" {
		all = append(all, v)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(v string) bool { return kube.HasVersion(crd, v) })
}

// blockers are in the order in which a user fixes them.
func (p Plan) blockers(f Facts, o Options, answer apierror.Answer) []godwit.Finding {
	crd := f.CRD
	var all []godwit.Finding
	add := func(e *BlockedError) { all = append(all, e.Blocker) }
	if crd.DeletionTimestamp != nil {
		add(blocked(ReasonTerminating, fmt.Sprintf("customresourcedefinition %s is being deleted", crd.Name), keepFinalizer(crd.Name)))
		return all
	}
	if !kube.Serves(crd, p.StorageVersion) {
		add(blocked(decision.ReasonStorageVersionNotServed, fmt.Sprintf("the storage version of %s, %s, is not served, so that objects can't be rewritten", crd.Name, p.StorageVersion),
			decision.Serve(crd, p.StorageVersion)))
	}
	for _, g := range f.Denied {
		add(blocked(decision.ReasonForbidden, fmt.Sprintf("%s may not %s", f.user(), g), g.Fix(f.User)))
	}
	if e := p.checkManifest(o.Manifest); e != nil {
		add(e)
	}
	if e := p.checkAnswer(f, o, answer); e != nil && len(f.Denied) == 0 {
		add(e)
	}
	return all
}

func (f Facts) user() string {
	if f.User == "" {
		return "the current user"
	}
	return f.User
}

// checkManifest refuses a file that was meant for another CRD.
func (p Plan) checkManifest(m *apiextensionsv1.CustomResourceDefinition) *BlockedError {
	switch {
	case m == nil:
		return nil
	case m.Name != p.Name:
		return blocked(ReasonOtherManifest, fmt.Sprintf("the manifest is of %s, and the rescue is of %s", m.Name, p.Name), useManifestOf(p.Name))
	case len(p.Missing) > 0 && len(p.Permissive) == len(p.Missing):
		return blocked(ReasonOtherManifest, fmt.Sprintf("the manifest of %s does not have %s", p.Name, strings.Join(p.Missing, ", ")),
			useManifest())
	}
	return nil
}

// checkAnswer refuses a rescue of objects that added versions do not make readable.
func (p Plan) checkAnswer(f Facts, o Options, answer apierror.Answer) *BlockedError {
	if f.Unreachable.Objects > 0 {
		return &BlockedError{Blocker: decision.OtherScope(f.CRD, f.Unreachable)}
	}
	if decision.KeyOfOtherScope(f.CRD, answer.Key) {
		return &BlockedError{Blocker: decision.Unlisted(f.CRD, f.List).Finding}
	}
	if p.Resumes {
		return nil
	}
	switch class := answer.Class; {
	case o.WithoutWebhook && !kube.Converts(f.CRD):
		return blocked(ReasonConverterAnswers, fmt.Sprintf("no webhook converts %s", f.CRD.Name), rescueWithWebhook())
	case o.WithoutWebhook && f.List == nil && len(p.Missing) == 0:
		return blocked(ReasonConverterAnswers, fmt.Sprintf("the API server reads every object of %s, so that its conversion webhook is not in the way", f.CRD.Name),
			migrateWithWebhook(f.CRD.Name))
	case class == apierror.ConversionUnavailable, class == apierror.ConversionFailed:
		if !o.WithoutWebhook {
			return converterGone(f.CRD, answer)
		}
	case class == apierror.UnreadableObject && answer.StoredVersion == "":
		return damaged(f.CRD, answer)
	case f.List != nil && len(p.Missing) == 0: // the API server may list them later
		return &BlockedError{Blocker: decision.Unlisted(f.CRD, f.List).Finding}
	}
	return nil
}

func converterGone(crd *apiextensionsv1.CustomResourceDefinition, answer apierror.Answer) *BlockedError {
	return blocked(ReasonConverterGone, fmt.Sprintf("the conversion webhook of %s does not convert objects: %s", crd.Name, quote.Line(answer.Message)),
		bringUpOrReplace(crd.Name))
}

func damaged(crd *apiextensionsv1.CustomResourceDefinition, answer apierror.Answer) *BlockedError {
	return blocked(ReasonDamagedObjects, fmt.Sprintf("the API server can't read objects of %s at any version: %s", crd.Name, quote.Line(answer.Message)),
		decision.RestoreObject(crd.Name))
}

// Grants are the permissions that a rescue needs, beside that to get the CRD. They are those of a migration.
func Grants(objects schema.GroupResource) []decision.Grant {
	return storageversion.RequiredPermissions(objects, storageversion.Options{})
}
