package decision

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/internal/storageversion/values"
)

// CheckValues blocks a run that would drop values of objects without the user's consent, or of which this is not known. A rescue
// compares the objects by itself.
func CheckValues(f Facts, p Policy) []godwit.Finding {
	if f.CRD.DeletionTimestamp != nil || p.InRescue || rescueUnfinished(f.CRD) || f.Checkpoint.Holds(f.CRD, p.Terms()) && f.Checkpoint.Proof.Holds(f.CRD.Generation, p.AcceptLosses) {
		return nil
	}
	unproven := values.Unproven(f.CRD)
	findings := checkConsent(f.CRD, unproven, p)
	if f.Objects != nil && *f.Objects == 0 {
		return findings
	}
	findings = append(findings, checkUnserved(f.CRD, unproven, p)...)
	return append(findings, f.RoundTrips.Check(f.CRD, p)...)
}

// Check returns the blockers of a run: values that it drops without the user's consent, and objects of which this is not known. r
// may be nil.
func (r *RoundTrips) Check(crd *apiextensionsv1.CustomResourceDefinition, p Policy) []godwit.Finding {
	if r == nil {
		return nil
	}
	var findings []godwit.Finding
	var lost []values.Loss
	var all []string
	for _, loss := range r.Losses {
		all = append(all, loss.Path)
		if !values.Covers(p.AcceptLosses, loss.Path) {
			lost = append(lost, loss)
		}
	}
	paths := slices.DeleteFunc(slices.Clone(p.AcceptLosses), func(path string) bool { return !values.Touches(path, all) })
	for _, loss := range lost {
		paths = append(paths, loss.Path)
	}
	if len(lost) > 0 || r.More && !values.Covers(p.AcceptLosses, values.EveryPath) {
		message := fmt.Sprintf("a rewrite of %s at %s drops values of objects: %s", crd.Name, kube.StorageVersion(crd), values.Describe(lost, r.More))
		if !r.All {
			message += fmt.Sprintf("; other objects may lose more, since only %d were tried", r.Objects)
		}
		findings = append(findings, godwit.Finding{Reason: ReasonFieldsWouldBeLost, Message: message, Fix: keepValues(crd.Name, paths...)})
	}
	if r.Failed > 0 && !values.Covers(p.AcceptLosses, values.EveryPath) {
		findings = append(findings, godwit.Finding{
			Reason: ReasonFieldsMayBeLost,
			Message: fmt.Sprintf("it is not known whether a rewrite of %s keeps each value, because objects could not be tried (%d)%s",
				crd.Name, r.Failed, first(r.Failures)),
			Fix: tryAgain(crd.Name).Or(giveUp(crd.Name, values.EveryPath)),
		})
	}
	return findings
}

// checkUnserved blocks if a rewrite may drop values of an old version that is not served: no client sees what its objects have.
func checkUnserved(crd *apiextensionsv1.CustomResourceDefinition, unproven []values.OldVersion, p Policy) []godwit.Finding {
	var names, where []string
	paths := slices.Clone(p.AcceptLosses)
	for _, old := range unproven {
		if old.Served || accepted(old, p) {
			continue
		}
		names = append(names, old.Name)
		if old.Unkept == nil {
			where, paths = append(where, old.Name+", from which a webhook converts"), []string{values.EveryPath}
			continue
		}
		unkept := values.Uncovered(paths, old.Unkept)
		where, paths = append(where, old.Name+": "+values.JoinPaths(values.Uncovered(p.AcceptLosses, old.Unkept))), append(paths, unkept...)
	}
	if len(names) == 0 {
		return nil
	}
	return blocker(ReasonFieldsMayBeLost,
		fmt.Sprintf("a rewrite of %s at %s may drop values of objects that are stored at a version which is not served, so that no client sees them: %s",
			crd.Name, kube.StorageVersion(crd), strings.Join(where, "; ")),
		serveToTry(crd, names...).Or(ProveFromEtcd(crd.Name), giveUp(crd.Name, paths...)))
}

// accepted reports whether the user gives up each value that the version may lose.
func accepted(o values.OldVersion, p Policy) bool {
	if o.Unkept == nil {
		return values.Covers(p.AcceptLosses, values.EveryPath)
	}
	return len(values.Uncovered(p.AcceptLosses, o.Unkept)) == 0
}

// checkConsent blocks if the user gives up values at a path at which none can be lost: the path may be misspelled.
func checkConsent(crd *apiextensionsv1.CustomResourceDefinition, unproven []values.OldVersion, p Policy) []godwit.Finding {
	var wrong []string
	for _, path := range p.AcceptLosses {
		if path != values.EveryPath && !slices.ContainsFunc(unproven, func(o values.OldVersion) bool { return o.MayLose(crd, path) }) {
			wrong = append(wrong, path)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return blocker(ReasonAcceptedPathUnknown,
		fmt.Sprintf("a rewrite of %s at %s can't lose values at %s: no old version that objects may be stored at has the field, or the storage version keeps it",
			crd.Name, kube.StorageVersion(crd), strings.Join(wrong, ", ")),
		correctPaths(crd.Name))
}

// ProofOf returns the proof of a run before its first write, for facts without a blocker. An old version through which no object was
// tried stays unproven, unless there are no objects.
func ProofOf(f Facts) evidence.Proof {
	proof := evidence.Proof{By: evidence.BySchemas, Generation: f.CRD.Generation}
	unproven := values.Unproven(f.CRD)
	if len(unproven) == 0 {
		return proof
	}
	proof.By = evidence.ByRoundTrips
	if r := f.RoundTrips; r != nil {
		proof.Objects, proof.Accepted = r.Objects, r.Losses
	}
	if f.Objects != nil && *f.Objects == 0 {
		return proof
	}
	for _, old := range unproven {
		if !old.Served || f.RoundTrips == nil {
			proof.Unproven = append(proof.Unproven, old.Name)
		}
	}
	if f.RoundTrips == nil {
		proof.By = evidence.ByConsent
	}
	return proof
}
