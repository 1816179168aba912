package crdmigrator

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
)

// Admission is what became of the policy's write as a dry run, tried on one
// object of each namespace. It holds what the API server said; what that amounts
// to is decided by [PlanFor].
type Admission struct {
	// Write is the one that was tried.
	Write Write
	// Trials are its dry runs, in the order of namespaces.
	Trials []Trial
	// StatusTrials are dry runs of [WriteStatusPatch], on the first object of
	// each kind of trouble that Trials met.
	StatusTrials []Trial
	// Namespaces is how many were seen to have objects that are still to be
	// written; 0 for a cluster-scoped resource. AllSeen: there are no others.
	Namespaces int
	AllSeen    bool
	// Unlisted is why no object could be listed.
	Unlisted string
	// TimedOut: the rehearsal's time was over before it had come to its end.
	TimedOut bool
	// Hooks are the webhooks and mutating policies whose rules cover the write;
	// read only where Trials met trouble. HooksUnread says why they are missing.
	Hooks       []Hook
	HooksUnread string
}

// Trial is the dry run of one write.
type Trial struct {
	Namespace, Name string
	// Code and Refusal are the API server's answer, if it refused.
	Code    int32
	Refusal string
	// Untold says why the trial tells nothing.
	Untold string
	// Changed are the first paths at which the object would come out other than
	// it went in, and More the number of those left out. Values are not kept:
	// objects hold secrets.
	Changed []string
	More    int
}

func (t Trial) key() string {
	if t.Namespace == "" {
		return t.Name
	}
	return t.Namespace + "/" + t.Name
}

// Hook is an admission webhook or a mutating policy, as it is configured.
type Hook struct {
	// Kind of the object that configures it, such as MutatingWebhookConfiguration.
	Kind string
	// Configuration is that object's name.
	Configuration string
	// Name of the webhook; of a policy it is the configuration's.
	Name string
}

func (h Hook) mutates() bool { return strings.HasPrefix(h.Kind, "Mutating") }

// Rehearsed counts what the trials of a plan amount to.
type Rehearsed struct {
	Write Write `json:"write"`
	// Tried is the number of objects, one of each namespace: the sum of the next
	// four.
	Tried    int `json:"tried"`
	Accepted int `json:"accepted"`
	Changed  int `json:"changed"`
	Refused  int `json:"refused"`
	Untold   int `json:"untold"`
	// NamespacesLeftOut were seen to have objects, and not tried; AllSeen: there
	// are no others.
	NamespacesLeftOut int  `json:"namespacesLeftOut"`
	AllSeen           bool `json:"allSeen"`
}

func (a *Admission) rehearsed() *Rehearsed {
	if a == nil {
		return nil
	}
	r := &Rehearsed{
		Write: a.Write, Tried: len(a.Trials), AllSeen: a.AllSeen, NamespacesLeftOut: max(0, a.Namespaces-len(a.Trials)),
	}
	for _, t := range a.Trials {
		switch t.judge().effect {
		case passes:
			r.Accepted++
		case changes:
			r.Changed++
		case untold:
			r.Untold++
		default:
			r.Refused++
		}
	}
	return r
}

// effect is what a trial amounts to.
type effect uint8

const (
	passes effect = iota
	// changes: accepted, and something in the server changed the object.
	changes
	// denies: a webhook or a policy refused.
	denies
	// unreachable: a webhook that must be asked does not answer.
	unreachable
	// invalid: the API server itself refused the object.
	invalid
	// untold: no answer, or one that says nothing about the write.
	untold
)

// ruling is an effect, whose it is, and the words that came with it.
type ruling struct {
	effect effect
	by     apierror.Origin
	words  string
}

// judge reads one answer.
func (t Trial) judge() ruling {
	switch {
	case t.Untold != "":
		return ruling{effect: untold, words: t.Untold}
	case t.Refusal == "" && t.Code == 0 && len(t.Changed) == 0:
		return ruling{effect: passes}
	case t.Refusal == "" && t.Code == 0:
		return ruling{effect: changes}
	}
	return judgeRefusal(t.Code, t.Refusal)
}

func judgeRefusal(code int32, refusal string) ruling {
	a := apierror.Parse(code, refusal)
	r := ruling{by: a.Origin, words: a.Cause}
	switch a.Class {
	case apierror.Denied:
		r.effect = denies
	case apierror.WebhookUnavailable, apierror.ConversionUnavailable, apierror.ConversionFailed:
		r.effect = unreachable
	case apierror.Refused:
		r.effect = invalid
	default:
		r.effect = untold
	}
	return r
}

// trouble is what several trials met alike.
type trouble struct {
	ruling
	trials []Trial
	// status is what became of a status-patch of the first of them; nil when that
	// was not tried.
	status *ruling
}

// troubles groups the trials that did not simply pass, in the order in which
// they were met.
func (a *Admission) troubles() []trouble {
	var list []trouble
	for _, t := range a.Trials {
		r := t.judge()
		if r.effect == passes {
			continue
		}
		i := slices.IndexFunc(list, func(known trouble) bool {
			return known.effect == r.effect && known.by == r.by
		})
		if i < 0 {
			i, list = len(list), append(list, trouble{ruling: r})
		}
		list[i].trials = append(list[i].trials, t)
	}
	for i := range list {
		first := list[i].trials[0]
		for _, t := range a.StatusTrials {
			if t.key() == first.key() {
				r := t.judge()
				list[i].status = &r
			}
		}
	}
	return list
}

// hook finds who ruled among those whose configuration could be read.
func (a *Admission) hook(by apierror.Origin) (Hook, bool) {
	i := slices.IndexFunc(a.Hooks, func(h Hook) bool { return by.Kind == apierror.Webhook && h.Name == by.Name })
	if i < 0 {
		return Hook{}, false
	}
	return a.Hooks[i], true
}

// troubled: something did not simply pass.
func (a *Admission) troubled() bool { return a != nil && len(a.troubles()) > 0 }

// offersStatus: there is a status to be written past whatever is in the way.
func (a *Admission) offersStatus(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return kube.HasStatus(crd) && a.Write.subresource() == ""
}
