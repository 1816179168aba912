package preflight

import (
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// timeLimit bounds a preflight, since a user waits for the plan. Attempts that have not ended
// by then are left out.
const timeLimit = 20 * time.Second

// result has the API server's answers to dry runs of the policy's write. [reportFor] decides
// what they mean.
type result struct {
	// write is the one that was tried.
	write decision.Write
	// attempts are the dry runs of that write, in the order of namespaces.
	attempts []attempt
	// statusAttempts are dry runs of WriteStatusPatch, on the first object of each problem.
	statusAttempts []attempt
	// roundTrips are those of the same objects; nil if the schemas prove that no value is lost.
	roundTrips *decision.RoundTrips
	// crdWrites are dry runs of the run's writes of the CRD.
	crdWrites []crdWrite
	// namespaces is how many have objects that are still to be written; 0 for a
	// cluster-scoped resource.
	namespaces int
	// allSeen means that no other namespaces have objects.
	allSeen bool
	// unlisted is why no object could be listed.
	unlisted string
	// timedOut means that the time was over before every object was tried.
	timedOut bool
	// configs are the webhooks and mutating policies whose rules cover the write; read only
	// where attempts met a problem. configsUnread says why they are missing.
	configs       []admissionConfig
	configsUnread string
}

// attempt is the dry run of one write.
type attempt struct {
	namespace, name string
	// code and refusal are the API server's answer, if it refused.
	code    int32
	refusal string
	// inconclusive says why the attempt proves nothing; empty if it does.
	inconclusive string
	// changed are the first paths that admission or a conversion would change, and more counts
	// the others. Values are not kept: objects hold secrets.
	changed []string
	more    int
}

// crdWrite is the dry run of a write of the CRD itself.
type crdWrite struct {
	what string
	attempt
}

func (a attempt) key() string {
	if a.namespace == "" {
		return a.name
	}
	return a.namespace + "/" + a.name
}

func (r *result) summary() *decision.PreflightSummary {
	s := &decision.PreflightSummary{
		Write: r.write, Tried: len(r.attempts), AllSeen: r.allSeen, NamespacesLeftOut: max(0, r.namespaces-len(r.attempts)),
	}
	for _, a := range r.attempts {
		switch a.outcome().effect {
		case passes:
			s.Accepted++
		case changes:
			s.Changed++
		case inconclusive:
			s.Inconclusive++
		default:
			s.Refused++
		}
	}
	return s
}

// effect is what an attempt amounts to.
type effect uint8

const (
	passes effect = iota
	// changes means that the write is accepted, and admission or a conversion changes the
	// object.
	changes
	// denies means that a webhook or a policy refuses the write.
	denies
	// unreachable means that a webhook that must be called does not answer.
	unreachable
	// invalid means that the API server itself refuses the object.
	invalid
	// inconclusive means that the answer, if there was one, says nothing about the write.
	inconclusive
)

// outcome is an effect, its origin, and the words that came with it.
type outcome struct {
	effect effect
	by     apierror.Origin
	words  string
	// forbidden means that the caller lacks the permission, so that nothing was tried.
	forbidden bool
}

// outcome reads one answer.
func (a attempt) outcome() outcome {
	switch {
	case a.inconclusive != "":
		return outcome{effect: inconclusive, words: a.inconclusive}
	case a.refusal == "" && a.code == 0 && len(a.changed) == 0:
		return outcome{effect: passes}
	case a.refusal == "" && a.code == 0:
		return outcome{effect: changes}
	}
	return outcomeOf(a.code, a.refusal)
}

func outcomeOf(code int32, refusal string) outcome {
	a := apierror.Parse(code, refusal)
	o := outcome{by: a.Origin, words: a.Cause, forbidden: a.Class == apierror.Forbidden}
	switch a.Class {
	case apierror.Denied:
		o.effect = denies
	case apierror.WebhookUnavailable, apierror.ConversionUnavailable, apierror.ConversionFailed:
		o.effect = unreachable
	case apierror.Refused:
		o.effect = invalid
	default:
		o.effect = inconclusive
	}
	return o
}

// problem is an outcome that several attempts have in common.
type problem struct {
	outcome
	attempts []attempt
	// status is the outcome of a StatusPatch of the first of them; nil if it was not tried.
	status *outcome
}

// problems groups the attempts that did not simply pass, in the order in which they were met.
func (r *result) problems() []problem {
	var list []problem
	for _, a := range r.attempts {
		o := a.outcome()
		if o.effect == passes {
			continue
		}
		i := slices.IndexFunc(list, func(known problem) bool {
			return known.effect == o.effect && known.by == o.by
		})
		if i < 0 {
			i, list = len(list), append(list, problem{outcome: o})
		}
		list[i].attempts = append(list[i].attempts, a)
	}
	for i := range list {
		first := list[i].attempts[0]
		for _, a := range r.statusAttempts {
			if a.key() == first.key() {
				o := a.outcome()
				list[i].status = &o
			}
		}
	}
	return list
}

// hasProblems reports whether an attempt did not simply pass.
func (r *result) hasProblems() bool { return len(r.problems()) > 0 }

// crdRefused reports whether a write of the CRD did not simply pass.
func (r *result) crdRefused() bool {
	return slices.ContainsFunc(r.crdWrites, func(w crdWrite) bool { return w.outcome().effect != passes })
}

// hasChanges reports whether admission or a conversion would change an object.
func (r *result) hasChanges() bool {
	return slices.ContainsFunc(r.problems(), func(p problem) bool { return p.effect == changes })
}

// offersStatus reports whether a write of the status is another way than the tried write.
func (r *result) offersStatus(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return kube.HasStatus(crd) && r.write.Subresource() == ""
}

// config finds the origin of an answer among the configurations that could be read.
func (r *result) config(by apierror.Origin) (admissionConfig, bool) {
	i := slices.IndexFunc(r.configs, func(c admissionConfig) bool { return by.Kind == apierror.Webhook && c.name == by.Name })
	if i < 0 {
		return admissionConfig{}, false
	}
	return r.configs[i], true
}

// admissionConfig is an admission webhook or a mutating policy, as it is configured.
type admissionConfig struct {
	// kind of the object that configures it, such as MutatingWebhookConfiguration.
	kind string
	// object is the name of that object.
	object string
	// name of the webhook; of a policy it is the object's.
	name string
}

func (c admissionConfig) mutates() bool { return strings.HasPrefix(c.kind, "Mutating") }
