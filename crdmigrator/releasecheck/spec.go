package releasecheck

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// refusal is a finding that the author of the file fixes.
func refusal(reason *godwit.Reason, message, do string) Finding {
	return finding(Refused, reason, message, godwit.Do(do))
}

// checkNames checks the immutable fields: group and plural are in every URL and key, kind and scope in every
// object and key.
func checkNames(f Facts) []Finding {
	next := f.Next
	var reasons []Finding
	if want := next.Spec.Names.Plural + "." + next.Spec.Group; f.Live == nil && next.Name != want {
		reasons = append(reasons, refusal(ReasonImmutableField,
			fmt.Sprintf("the name of %s is not plural and group of its spec, %s", next.Name, want), callIt(want)))
	}
	if f.Live == nil {
		return reasons
	}
	old := f.Live.Spec
	fields := []struct {
		path, old, next string
		fixed           bool
	}{
		{"spec.group", old.Group, next.Spec.Group, true},
		{"spec.names.plural", old.Names.Plural, next.Spec.Names.Plural, true},
		{"spec.names.kind", old.Names.Kind, next.Spec.Names.Kind, kube.Established(f.Live)},
		{"spec.scope", string(old.Scope), string(next.Spec.Scope), kube.Established(f.Live)},
	}
	for _, field := range fields {
		if field.fixed && field.old != field.next {
			reasons = append(reasons, refusal(ReasonImmutableField,
				fmt.Sprintf("%s of %s changes from %s to %q, and is immutable", field.path, next.Name, field.old, field.next),
				leaveAs(field.old)))
		}
	}
	return reasons
}

func checkVersionList(f Facts) []Finding {
	next := f.Next
	var reasons []Finding
	var storage []string
	seen := map[string]bool{}
	for _, v := range next.Spec.Versions {
		if v.Storage {
			storage = append(storage, v.Name)
		}
		if seen[v.Name] {
			reasons = append(reasons, refusal(ReasonInvalidVersion, fmt.Sprintf("%s lists version %s twice", next.Name, v.Name), removeOne))
		}
		seen[v.Name] = true
		if wrong := validation.IsDNS1035Label(v.Name); len(wrong) > 0 {
			reasons = append(reasons, refusal(ReasonInvalidVersion,
				fmt.Sprintf("%q of %s is not the name of a version: %s", v.Name, next.Name, wrong[0]), callVersion))
		}
		if !hasSchema(v) && (f.Live == nil || !slices.ContainsFunc(f.Live.Spec.Versions, lacksSchema)) {
			reasons = append(reasons, refusal(ReasonInvalidVersion,
				fmt.Sprintf("version %s of %s has no schema.openAPIV3Schema", v.Name, next.Name), addSchema))
		}
	}
	switch {
	case len(storage) == 0:
		reasons = append(reasons, refusal(decision.ReasonNoStorageVersion, fmt.Sprintf("no version of %s is marked as the storage version", next.Name),
			markOne))
	case len(storage) > 1:
		reasons = append(reasons, refusal(ReasonSeveralStorageVersions, fmt.Sprintf("%s are all marked as the storage version of %s", strings.Join(storage, ", "), next.Name),
			markOneAlone))
	}
	return reasons
}

func hasSchema(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
	return v.Schema != nil && v.Schema.OpenAPIV3Schema != nil
}

func lacksSchema(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return !hasSchema(v) }

func checkConversion(f Facts) []Finding {
	c := f.Next.Spec.Conversion
	if c == nil {
		return nil // the server makes it None
	}
	var reasons []Finding
	invalid := func(what, do string) {
		reasons = append(reasons, refusal(ReasonInvalidConversion, fmt.Sprintf("spec.conversion of %s %s", f.Next.Name, what), do))
	}
	switch {
	case c.Strategy == apiextensionsv1.NoneConverter:
		if c.Webhook != nil && (c.Webhook.ClientConfig != nil || len(c.Webhook.ConversionReviewVersions) > 0) {
			invalid("has strategy None and a webhook", webhookOrNone)
		}
		return reasons
	case c.Strategy != apiextensionsv1.WebhookConverter:
		invalid(fmt.Sprintf("has strategy %q", c.Strategy), noneOrWebhook)
		return reasons
	case c.Webhook == nil || c.Webhook.ClientConfig == nil:
		invalid("has strategy Webhook and no webhook.clientConfig", addClientConfig)
	case (c.Webhook.ClientConfig.URL == nil) == (c.Webhook.ClientConfig.Service == nil):
		invalid("has a webhook.clientConfig without exactly one of url and service", setOne)
	}
	if c.Webhook == nil || !reviewable(c.Webhook.ConversionReviewVersions) && !oddReviewVersions(f.Live) {
		invalid("names no review version that the API server supports", addReviewVersion)
	}
	if f.Next.Spec.PreserveUnknownFields {
		invalid("has strategy Webhook, while spec.preserveUnknownFields is true", pruneUnknown)
	}
	return reasons
}

// reviewable reports whether the API server supports one of the versions of ConversionReview.
func reviewable(versions []string) bool {
	return slices.Contains(versions, "v1") || slices.Contains(versions, "v1beta1")
}

// oddReviewVersions reports whether the live CRD has unsupported review versions already: the API
// server then accepts them again.
func oddReviewVersions(live *apiextensionsv1.CustomResourceDefinition) bool {
	if live == nil || live.Spec.Conversion == nil || live.Spec.Conversion.Webhook == nil {
		return false
	}
	versions := live.Spec.Conversion.Webhook.ConversionReviewVersions
	return len(versions) > 0 && !reviewable(versions)
}

// checkNextServing checks which versions are served: a read of objects needs one of them, a migration the storage version.
func checkNextServing(f Facts) []Finding {
	next, target := f.Next, kube.StorageVersion(f.Next)
	var reasons []Finding
	switch {
	case len(next.Spec.Versions) == 0:
	case len(kube.ServedVersions(next)) == 0:
		result := Unsafe
		if f.Live == nil || f.empty() {
			result = Safe // no object can become unreadable
		}
		reasons = append(reasons, finding(result, ReasonNoServedVersion,
			fmt.Sprintf("no version of %s is served: its objects can't be read, nor written", next.Name), serveStorage()))
	case target != "" && !kube.Serves(next, target):
		reasons = append(reasons, finding(Safe, ReasonUnservedStorageVersion,
			fmt.Sprintf("storage version %s of %s is not served, so that no migration to it is possible", target, next.Name),
			serve(target)))
	}
	// Stale objects have the same remedy, and a better reason for it.
	if gone := f.removedServed(); len(gone) > 0 && !f.empty() && f.Stale == 0 {
		reasons = append(reasons, finding(Safe, ReasonRemovedWhileServed,
			fmt.Sprintf("%s of %s is served today: clients that still use it will get a 404 until another release serves it again", strings.Join(gone, ","), next.Name),
			unserveInRelease()))
	}
	return reasons
}

func versionOf(crd *apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return &crd.Spec.Versions[i]
}

// etcdLimit is etcd's default of --max-request-bytes, 1.5 MiB, less what a request has beside the spec of a CRD: its metadata and its
// status.
const etcdLimit = 1536*1024 - 2048

// checkSize reports a CRD that etcd does not store by default.
func checkSize(f Facts) []Finding {
	text, err := json.Marshal(f.Next.Spec)
	if err != nil || len(text) <= etcdLimit {
		return nil
	}
	return []Finding{finding(Unknown, ReasonTooLarge,
		fmt.Sprintf("the spec of %s has %d bytes as JSON: etcd refuses requests of over 1.5 MiB, unless its --max-request-bytes is higher", f.Next.Name, len(text)),
		shortenSchemas())}
}
