package decision

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
)

// Server is an API server as its identity lease shows it.
type Server = settle.Server

func blocker(reason *godwit.Reason, message string, fix godwit.Fix) []godwit.Finding {
	return []godwit.Finding{{Reason: reason, Message: message, Fix: fix}}
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// Forbidden names the permission that is missing.
func Forbidden(user string, g Grant) godwit.Finding {
	return godwit.Finding{
		Reason:  ReasonForbidden,
		Message: fmt.Sprintf("%s may not %s", orElse(user, "the current user"), g),
		Fix:     g.Fix(user),
	}
}

// BeingDeleted is the blocker of a CRD that is being deleted.
func BeingDeleted(crd *apiextensionsv1.CustomResourceDefinition) godwit.Finding {
	return godwit.Finding{
		Reason:  ReasonTerminating,
		Message: fmt.Sprintf("customresourcedefinition %s is being deleted, with all its objects", crd.Name),
		Fix:     seeDeletion(crd.Name),
	}
}

func notEstablished(crd *apiextensionsv1.CustomResourceDefinition) godwit.Finding {
	return godwit.Finding{
		Reason:  ReasonNotEstablished,
		Message: fmt.Sprintf("customresourcedefinition %s is not served: %s", crd.Name, whyNotEstablished(crd)),
		Fix:     establish(crd),
	}
}

func noStorageVersion(crd *apiextensionsv1.CustomResourceDefinition) godwit.Finding {
	return godwit.Finding{
		Reason:  ReasonNoStorageVersion,
		Message: fmt.Sprintf("no version of %s is marked as the storage version", crd.Name),
		Fix:     markStorageVersion(crd.Name),
	}
}

func storageNotServed(crd *apiextensionsv1.CustomResourceDefinition) godwit.Finding {
	version := kube.StorageVersion(crd)
	return godwit.Finding{
		Reason:  ReasonStorageVersionNotServed,
		Message: fmt.Sprintf("storage version %s of %s is not served, and writing through another version can lose fields", version, crd.Name),
		Fix:     Serve(crd, version),
	}
}

// RescueAnnotation is on a CRD until a rescue of its objects has ended, with what the rescue has changed of the CRD.
const RescueAnnotation = "godwit.dev/rescue"

// rescueUnfinished reports whether a rescue of the CRD has not ended. An annotation that can't be read counts: the rescue itself
// reports what is wrong with it. An annotation with the UID of another CRD, as in a restored manifest, does not count.
func rescueUnfinished(crd *apiextensionsv1.CustomResourceDefinition) bool {
	text, ok := crd.Annotations[RescueAnnotation]
	if !ok {
		return false
	}
	var of struct {
		CRDUID types.UID `json:"crdUID"`
	}
	return format.Check(RescueAnnotation, []byte(text)) != nil || json.Unmarshal([]byte(text), &of) != nil || of.CRDUID == crd.UID
}

func rescueInterrupted(crd *apiextensionsv1.CustomResourceDefinition) godwit.Finding {
	return godwit.Finding{
		Reason:  ReasonRescueInterrupted,
		Message: fmt.Sprintf("a rescue of %s has not ended, so that the CRD has versions which only the rescue needs", crd.Name),
		Fix:     resumeRescue(crd.Name),
	}
}

func whyNotEstablished(crd *apiextensionsv1.CustomResourceDefinition) string {
	if c := namesRefused(crd); c != nil {
		return c.Message
	}
	return "condition Established is not True"
}

// namesRefused returns the condition that says that another CRD of the group has a name of this one; nil without it.
func namesRefused(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionCondition {
	for i, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse {
			return &crd.Status.Conditions[i]
		}
	}
	return nil
}

// establish is what to do about a CRD that is not served.
func establish(crd *apiextensionsv1.CustomResourceDefinition) godwit.Fix {
	if namesRefused(crd) == nil {
		return waitEstablished(crd.Name)
	}
	return freeNames(crd)
}

// StaleLeases are the blockers for the API servers with a stale lease, among all of them. Since one API server answers, they are
// not all gone: where none renews its lease, etcd stores nothing.
func StaleLeases(stale, all []Server, now time.Time) []godwit.Finding {
	if len(stale) > 0 && len(stale) == len(all) {
		return blocker(ReasonNoLeaseRenewed,
			fmt.Sprintf("no API server renews its lease, although one answers; the last was renewed %s ago: etcd stores nothing, for example because it is full", now.Sub(lastRenewed(all)).Round(time.Second)),
			seeEtcdWrites())
	}
	var blockers []godwit.Finding
	for _, s := range stale {
		blockers = append(blockers, LeaseStale(s, now))
	}
	return blockers
}

func lastRenewed(all []Server) time.Time {
	return slices.MaxFunc(all, func(a, b Server) int { return a.Renewed.Compare(b.Renewed) }).Renewed
}

// EtcdFull is the finding for a write that etcd refuses because it is out of space.
func EtcdFull(words string) godwit.Finding {
	return godwit.Finding{Reason: ReasonEtcdFull, Message: "etcd is out of space, and stores nothing: " + words, Fix: freeEtcd()}
}

// LeaseStale is the blocker for an API server with a stale lease.
func LeaseStale(s Server, now time.Time) godwit.Finding {
	return godwit.Finding{
		Reason: ReasonServerLeaseStale,
		Message: fmt.Sprintf("API server %s has a stale lease, renewed %s ago, and may still have requests under way that store the old version",
			s, now.Sub(s.Renewed).Round(time.Second)),
		Fix: replaceServer(s.Name, ""),
	}
}

// first names the first of some objects that failed, after a comma.
func first(failures []godwit.Failure) string {
	if len(failures) == 0 {
		return ""
	}
	f := failures[0]
	return fmt.Sprintf(", the first: %s: %s", strings.TrimPrefix(f.Namespace+"/"+f.Name, "/"), f.Message)
}
