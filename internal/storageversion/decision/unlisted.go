package decision

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quicklist"
	"github.com/godwit-dev/godwit/internal/quote"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
)

// FixList is the fix for a list of any resource that failed, by the reason of the API server's answer. It knows only the name of a CRD.
func FixList(reason *godwit.Reason, r schema.GroupVersionResource) godwit.Fix {
	switch reason {
	case ReasonNotServed:
		return seeAPIService(strings.Trim(r.Version+"."+r.Group, "."))
	case ReasonThrottled:
		return awaitLessLoad()
	case ReasonServerError:
		return seeReadiness()
	case ReasonTimeout:
		return seeLoad()
	case ReasonWebhookUnavailable:
		return (*converter)(nil).bringUp(r.GroupResource().String())
	case ReasonConversionFailed:
		return (*converter)(nil).fix(r.GroupResource().String())
	case ReasonUnreadableObjects:
		return godwit.Do(restore)
	case ReasonEncryptionKeyMissing:
		return PutKeyBack(r.GroupResource().String())
	}
	return seeRefusal("/" + strings.Join(kube.CollectionPath(r, ""), "/") + "?limit=1")
}

// UnlistedError says why the API server did not list the objects of a CRD. The number
// of the objects, their versions and their managedFields are then unknown.
type UnlistedError struct {
	// CRD is the name of the CustomResourceDefinition.
	CRD string
	// Finding is what the API server answered, and what to do about it.
	godwit.Finding
	// Starting means that the CRD is new, and that the API servers will serve it within
	// seconds: a control loop retries, and reports nothing.
	Starting bool
	// Err is the API server's answer; nil when no request was sent.
	Err error
}

func (e *UnlistedError) Error() string {
	return fmt.Sprintf("list the objects of %s: %s: %s; %s", e.CRD, e.Reason, e.Message, e.Fix)
}

func (e *UnlistedError) Unwrap() error { return e.Err }

// Blocks reports whether the answer proves that objects can't be read, so that no
// migration can succeed before a user acts.
func (e *UnlistedError) Blocks() bool {
	return slices.Contains([]*godwit.Reason{ReasonWebhookUnavailable, ReasonConversionFailed, ReasonUnreadableObjects, ReasonEncryptionKeyMissing, ReasonOtherServerAnswers, ReasonOtherScope}, e.Reason)
}

// Transient reports whether the cause may end without a user's action.
func (e *UnlistedError) Transient() bool {
	return slices.Contains([]*godwit.Reason{ReasonNotEstablished, ReasonThrottled, ReasonServerError, ReasonTimeout}, e.Reason)
}

// unserved says why the API server does not serve the objects at the storage version;
// nil if it does. Without it, no list is tried.
func unserved(crd *apiextensionsv1.CustomResourceDefinition) *UnlistedError {
	version := kube.StorageVersion(crd)
	var b godwit.Finding
	switch {
	case !kube.Established(crd):
		b = notEstablished(crd)
	case version == "":
		b = noStorageVersion(crd)
	case !kube.Serves(crd, version):
		b = storageNotServed(crd)
	default:
		return nil
	}
	return &UnlistedError{CRD: crd.Name, Finding: b}
}

// Unlisted classifies the API server's answer to a list of the objects of a CRD. If err is nil,
// it decides by the CRD alone whether the objects can be listed at the storage version; nil
// if they can.
func Unlisted(crd *apiextensionsv1.CustomResourceDefinition, err error) *UnlistedError {
	if err == nil {
		return unserved(crd)
	}
	return unlisted(crd, err)
}

// unlisted classifies the answer to a list at the storage version, for plans, scans,
// checks and runs alike.
func unlisted(crd *apiextensionsv1.CustomResourceDefinition, err error) *UnlistedError {
	e := &UnlistedError{CRD: crd.Name, Err: err}
	resource := kube.ResourceOf(crd)
	again := godwit.PlanMigration{CRD: crd.Name}
	answer := apierror.Of(err)
	words := quote.Line(answer.Message)
	set := func(found godwit.Finding) { e.Finding = found }
	if quicklist.TimedOut(err) {
		answer.Class = apierror.Timeout
	}
	switch answer.Class {
	case apierror.ConversionUnavailable, apierror.ConversionFailed:
		set(unconvertible(crd, answer))
	case apierror.KeyMissing:
		set(KeyMissing(resource.GroupResource(), answer))
	case apierror.UnreadableObject:
		if KeyOfOtherScope(crd, answer.Key) {
			set(OtherScope(crd, Unreachable{Objects: 1, Example: answer.Key, More: true}))
			break
		}
		set(unreadableObjects(crd, answer))
	case apierror.Forbidden:
		set(Forbidden(answer.User, Grant{Verb: "list", Resource: resource.GroupResource()})) // in all namespaces
	case apierror.Unauthorized:
		set(Unauthorized())
	case apierror.NotFound:
		set(godwit.Finding{
			Reason:  ReasonNotServed,
			Message: fmt.Sprintf("%s serves %s, but the API server answers 404 for it: %s", crd.Name, resource.Version, words),
			Fix:     FixList(ReasonNotServed, resource).Then(planAgain, again),
		})
	case apierror.Throttled:
		set(godwit.Finding{
			Reason:  ReasonThrottled,
			Message: fmt.Sprintf("the API server answers 429 to each list of %s: %s", crd.Name, words),
			Fix:     FixList(ReasonThrottled, resource).Then(planAgain, again),
		})
	case apierror.Timeout:
		set(timedOut(crd, words))
	case apierror.ServerError, apierror.StorageFull:
		set(godwit.Finding{
			Reason:  ReasonServerError,
			Message: fmt.Sprintf("the API server fails to list the objects of %s: %s", crd.Name, words),
			Fix:     FixList(ReasonServerError, resource).Then(planAgain, again),
		})
	default:
		set(godwit.Finding{
			Reason:  ReasonListRefused,
			Message: fmt.Sprintf("the list of the objects of %s is refused: %s", crd.Name, words),
			Fix:     FixList(ReasonListRefused, resource).Then(planAgain, again),
		})
	}
	return e
}

// Unauthorized is the finding for credentials that the API server does not accept.
func Unauthorized() godwit.Finding {
	return godwit.Finding{Reason: ReasonUnauthorized, Message: "the API server does not accept the credentials: they are expired or wrong", Fix: RenewCredentials()}
}

// timedOut is the finding for a list that took too long. It names the conversion webhook, for which the
// API server waits up to 30 s.
func timedOut(crd *apiextensionsv1.CustomResourceDefinition, words string) godwit.Finding {
	b := godwit.Finding{
		Reason:  ReasonTimeout,
		Message: fmt.Sprintf("the API server did not list one object of %s within %v: %s", crd.Name, quicklist.Limit, words),
		Fix:     seeLoad(),
	}
	if webhook := conversionWebhook(crd); webhook != nil {
		b.Message = fmt.Sprintf("the API server did not list one object of %s within %v, and may wait for the conversion webhook, %s: %s", crd.Name, quicklist.Limit, webhook, words)
		b.Fix = webhook.bringUp(crd.Name)
	}
	b.Fix = b.Fix.Then(planAgain, godwit.PlanMigration{CRD: crd.Name})
	return b
}

// unconvertible is the finding for a conversion webhook that fails. The API server converts
// only objects that are stored at another version than the listed one. The answer therefore
// also proves that a trimmed status.storedVersions is wrong.
func unconvertible(crd *apiextensionsv1.CustomResourceDefinition, a apierror.Answer) godwit.Finding {
	webhook := conversionWebhook(crd)
	b := godwit.Finding{
		Reason:  ReasonWebhookUnavailable,
		Message: fmt.Sprintf("the conversion webhook of %s, %s, does not answer, without which no object can be read: %s", crd.Name, webhook, quote.Line(a.Message)),
		Fix:     webhook.bringUp(crd.Name),
	}
	if a.Class == apierror.ConversionFailed {
		b.Reason = ReasonConversionFailed
		b.Message = fmt.Sprintf("the conversion webhook of %s, %s, does not convert objects: %s", crd.Name, webhook, quote.Line(a.Message))
		b.Fix = webhook.fix(crd.Name)
	}
	b.Message += distrust(crd, a.StoredVersion)
	b.Fix = putBackIfTrimmed(b.Fix, crd, a.StoredVersion)
	return b
}

// unreadableObjects is the finding for objects that the API server can't read. Its message has
// the API server's words, which name the key of such an object.
func unreadableObjects(crd *apiextensionsv1.CustomResourceDefinition, a apierror.Answer) godwit.Finding {
	words := quote.Clip(strings.Join(strings.Fields(a.Message), " "), keyBytes)
	b := godwit.Finding{
		Reason:  ReasonUnreadableObjects,
		Message: fmt.Sprintf("the API server can't read objects of %s from etcd: %s", crd.Name, words),
		Fix:     RestoreObject(crd.Name),
	}
	if v := a.StoredVersion; v != "" && !kube.HasVersion(crd, v) {
		b.Message = fmt.Sprintf("the API server can't read objects of %s from etcd, because spec.versions lacks %s: %s%s", crd.Name, v, words, distrust(crd, v))
		b.Fix = rescueObjects(crd.Name).Or(putBackIfTrimmed(addVersion(crd, v), crd, v))
	}
	return b
}

// KeyMissing is the finding for objects whose encryption key the API server lacks.
func KeyMissing(r schema.GroupResource, a apierror.Answer) godwit.Finding {
	return godwit.Finding{
		Reason:  ReasonEncryptionKeyMissing,
		Message: fmt.Sprintf("the API server lacks the key with which objects of %s in etcd are encrypted: %s", r, quote.Clip(strings.Join(strings.Fields(a.Message), " "), keyBytes)),
		Fix:     PutKeyBack(r.String()),
	}
}

// distrust is the part of a message that says that status.storedVersions is wrong; empty if it is not.
func distrust(crd *apiextensionsv1.CustomResourceDefinition, stored string) string {
	if !kube.Trimmed(crd) || stored == "" {
		return ""
	}
	return fmt.Sprintf("; status.storedVersions lists only %s, but at least one object is stored at %s", kube.StorageVersion(crd), stored)
}

// putBackIfTrimmed is [putBack] if status.storedVersions lacks the version of an object.
func putBackIfTrimmed(fix godwit.Fix, crd *apiextensionsv1.CustomResourceDefinition, stored string) godwit.Fix {
	if !kube.Trimmed(crd) || stored == "" {
		return fix
	}
	return putBack(fix, crd.Name, stored, kube.StorageVersion(crd))
}

// keyBytes leaves room for the longest key of an object in etcd, and for the API server's
// words about it.
const keyBytes = 1000

// servedWithin is the time after the condition Established in which an API server may still
// answer 404: it learns of the CRD by a watch, for which the settle time allows the same
// 15 s.
const servedWithin = settle.WatchLag

// MayBeOfOther reports whether the answer may be that of another server, to which the API server forwards requests.
func (e *UnlistedError) MayBeOfOther() bool {
	return e.Err != nil && slices.Contains([]*godwit.Reason{ReasonNotServed, ReasonServerError, ReasonTimeout, ReasonListRefused}, e.Reason)
}

// ServedSoon reports whether a list failed because the CRD is new: every API server
// serves it within seconds, without a user's action. A CRD whose names another CRD has
// is not served soon.
func (e *UnlistedError) ServedSoon(crd *apiextensionsv1.CustomResourceDefinition, now time.Time) bool {
	switch e.Reason {
	case ReasonNotEstablished:
		return namesRefused(crd) == nil && crd.DeletionTimestamp == nil
	case ReasonNotServed:
		return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue && now.Sub(c.LastTransitionTime.Time) < servedWithin
		})
	}
	return false
}
