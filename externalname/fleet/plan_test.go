package fleet

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/internal/managed"
	"github.com/godwit-dev/godwit/internal/fixtest"
)

var testKind = Kind{Resource: schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "persons"}, Kind: "Person"}

// fact is a managed resource that can be renamed from a to b.
func fact(change func(*Fact)) Fact {
	name := "a"
	f := Fact{Namespace: "ns", Name: "one", ExternalName: &name, Proposal: Proposal{Name: "b", Form: "Old"}, Managed: true, Observed: true, HasPolicies: true}
	if change != nil {
		change(&f)
	}
	return f
}

func TestPlanFor(t *testing.T) {
	for reason, test := range map[string]struct {
		fact   Fact
		class  Class
		action Action
		want   *godwit.Reason
	}{
		"renamed":             {fact(nil), Legacy, Rename, nil},
		"canonical":           {fact(func(f *Fact) { f.Proposal = Proposal{Name: "a"} }), Canonical, None, nil},
		"canonical, paused":   {fact(func(f *Fact) { f.Proposal = Proposal{Name: "a"}; f.Paused = true }), Canonical, None, nil},
		"no managed resource": {fact(func(f *Fact) { f.Managed = false }), NotOurs, None, ReasonNotManaged},
		"upjet":               {fact(func(f *Fact) { f.Upjet = true }), NotOurs, None, ReasonUpjet},
		"deleted":             {fact(func(f *Fact) { f.Deleting = true }), Deleting, None, ReasonTerminating},
		"creating":            {fact(func(f *Fact) { f.CreateIncomplete = true }), CreateIncomplete, Skip, ReasonCreateIncomplete},
		"invalid": {fact(func(f *Fact) {
			f.Proposal = Proposal{Err: &externalname.InvalidError{Reason: externalname.ReasonNotGUID}}
		}), Invalid, Skip, externalname.ReasonNotGUID},
		"no key":                        {fact(func(f *Fact) { f.Proposal = Proposal{Err: ErrNoKey} }), Invalid, Skip, ReasonNoProposal},
		"no proposal":                   {fact(func(f *Fact) { f.Proposal = Proposal{Form: "Hint"} }), Legacy, Skip, ReasonNoProposal},
		"without name":                  {fact(func(f *Fact) { f.ExternalName, f.Proposal = nil, Proposal{} }), Empty, None, ReasonNoName},
		"created, and the name is lost": {fact(func(f *Fact) { f.ExternalName, f.NameLost = nil, true }), Lost, Skip, ReasonNameLost},
		"lost, with a recorded name":    {fact(func(f *Fact) { f.ExternalName, f.NameLost, f.Bound, f.Paused = nil, true, "a", true }), Lost, Skip, ReasonNameLost},
		"lost, of Upjet":                {fact(func(f *Fact) { f.ExternalName, f.NameLost, f.Upjet = nil, true, true }), Lost, Skip, ReasonNameLost},
		"lost, and creating again":      {fact(func(f *Fact) { f.ExternalName, f.NameLost, f.CreateIncomplete = nil, true, true }), CreateIncomplete, Skip, ReasonCreateIncomplete},
		"gets a name":                   {fact(func(f *Fact) { f.ExternalName = nil }), Empty, Rename, nil},
		"GitOps":                        {fact(func(f *Fact) { f.Owner = Owner{Manager: "argocd-controller", Source: true} }), Legacy, Skip, ReasonSourceOwned},
		"paused":                        {fact(func(f *Fact) { f.Paused = true }), Legacy, Skip, ReasonPaused},
		"not observed":                  {fact(func(f *Fact) { f.Observed = false }), Legacy, Skip, ReasonNotObserved},
		"only mirrors the spec":         {fact(func(f *Fact) { f.Observed, f.Mirrored = false, []string{"mail", "name"} }), Legacy, Skip, ReasonNoIdentity},
		"without policies":              {fact(func(f *Fact) { f.HasPolicies = false }), Legacy, Skip, ReasonMayCreate},
		"policies from a source":        {fact(func(f *Fact) { f.PoliciesOwner = Owner{Manager: "flux", Source: true} }), Legacy, Skip, ReasonMayCreate},
		"doubled":                       {fact(func(f *Fact) { f.Second = "two" }), Legacy, Skip, ReasonSecondResource},
		"stale":                         {fact(func(f *Fact) { f.Stale = true }), Legacy, Skip, ReasonStaleStatus},
		"hides absence":                 {fact(func(f *Fact) { f.HidesAbsence = true }), Legacy, Rename, nil},
		"journal":                       {fact(func(f *Fact) { f.JournalErr = errors.New("no") }), Legacy, Skip, ReasonJournalUnreadable},
		"interrupted":                   {fact(func(f *Fact) { f.RenamingTo, f.Paused = "b", true }), Legacy, Resume, nil},
		"interrupted, and then deleted": {fact(func(f *Fact) { f.RenamingTo, f.Deleting = "b", true }), Deleting, Resume, nil},
	} {
		t.Run(reason, func(t *testing.T) {
			i := PlanFor(Scan{Kind: testKind, Facts: []Fact{test.fact}})[0]
			if i.Class != test.class || i.Action != test.action || i.Reason != test.want {
				t.Errorf("it is %s, %s, %q; want %s, %s, %q", i.Class, i.Action, i.Reason, test.class, test.action, test.want)
			}
			if i.Reason != nil && i.Message == "" {
				t.Error("the reason has no message")
			}
			checkFix(t, i)
		})
	}
}

// checkFix compares an item with its reason.
func checkFix(t *testing.T, i Item) {
	t.Helper()
	if i.Reason == nil {
		if i.Fix != nil {
			t.Errorf("a fix without a reason: %s", i.Fix)
		}
		return
	}
	if err := fixtest.Check(i.Finding); err != nil {
		t.Error(err)
	}
}

func spelled(f Fact) Fact {
	f.Proposal.Spelling = true
	return f
}

func elsewhere(f Fact) Fact {
	f.Outside = true
	return f
}

// TestUnsafeRenamingsNeedConsent: without it the plan skips what may make a second external resource.
func TestUnsafeRenamingsNeedConsent(t *testing.T) {
	for name, s := range map[string]Scan{
		"without policies":       {Facts: []Fact{fact(func(f *Fact) { f.HasPolicies = false })}},
		"policies from a source": {Facts: []Fact{fact(func(f *Fact) { f.PoliciesOwner = Owner{Manager: "flux", Source: true} })}},
		"others are not read":    {Facts: []Fact{fact(nil)}, Unread: "forbidden"},
	} {
		if i := PlanFor(s)[0]; i.Action != Skip || i.Reason == nil {
			t.Errorf("%s: %s, %s", name, i.Action, i.Reason)
		}
		s.AcceptUnsafe = true
		if i := PlanFor(s)[0]; i.Action != Rename {
			t.Errorf("%s, accepted: %s, %s: %s", name, i.Action, i.Reason, i.Message)
		}
	}
	paused := fact(func(f *Fact) { f.HasPolicies, f.RenamingTo, f.Unwritten = false, "b", true })
	if i := PlanFor(Scan{Facts: []Fact{paused}})[0]; i.Action != Skip || i.Reason != ReasonMayCreate {
		t.Errorf("resumed, and its name is not written yet: %s, %s", i.Action, i.Reason)
	}
	paused.Unwritten = false
	if i := PlanFor(Scan{Facts: []Fact{paused}})[0]; i.Action != Resume {
		t.Errorf("resumed after its name was written: %s, %s", i.Action, i.Reason)
	}
	hidden := fact(func(f *Fact) { f.HidesAbsence, f.HasPolicies = true, false })
	if i := PlanFor(Scan{Facts: []Fact{hidden}, AcceptUnsafe: true})[0]; i.Reason != ReasonAbsenceHidden {
		t.Errorf("without a trial: %s, %s", i.Action, i.Reason)
	}
}

// Names are duplicates within an account: now, after the renaming, and when one takes another's.
func TestDuplicates(t *testing.T) {
	named := func(name, current, proposed, account string) Fact {
		return fact(func(f *Fact) { f.Name, f.ExternalName, f.Proposal.Name, f.Account = name, &current, proposed, account })
	}
	for reason, test := range map[string]struct {
		facts []Fact
		want  map[string]string
	}{
		"same name now":       {[]Fact{named("one", "a", "a", ""), named("two", "a", "a", "")}, map[string]string{"one": "Duplicate Duplicate", "two": "Duplicate Duplicate"}},
		"same name then":      {[]Fact{named("one", "a", "c", ""), named("two", "b", "c", "")}, map[string]string{"one": "Duplicate NotDistinct", "two": "Duplicate NotDistinct"}},
		"same spelled":        {[]Fact{spelled(named("one", "A", "a", "")), spelled(named("two", "a ", "a", ""))}, map[string]string{"one": "Duplicate Duplicate", "two": "Duplicate Duplicate"}},
		"takes another's":     {[]Fact{named("one", "a", "b", ""), named("two", "b", "b", "")}, map[string]string{"one": "Duplicate NotDistinct", "two": "Duplicate NotDistinct"}},
		"of another scope":    {[]Fact{named("one", "a", "b", ""), elsewhere(named("two", "b", "", ""))}, map[string]string{"one": "Duplicate NotDistinct"}},
		"in another account":  {[]Fact{named("one", "a", "b", "x"), named("two", "b", "b", "y")}, map[string]string{"one": "Legacy", "two": "Canonical"}},
		"different all along": {[]Fact{named("one", "a", "b", ""), named("two", "c", "d", "")}, map[string]string{"one": "Legacy", "two": "Legacy"}},
	} {
		t.Run(reason, func(t *testing.T) {
			got := map[string]string{}
			for _, i := range PlanFor(Scan{Kind: testKind, Facts: test.facts}) {
				got[i.Name] = strings.TrimSpace(string(i.Class) + " " + i.Reason.String())
				checkFix(t, i)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Two managed resources of one external resource are duplicates, whatever their names are.
func TestDuplicatesInOtherSpellings(t *testing.T) {
	observed := func(name, external, id string) Fact {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "Person",
			"spec": map[string]any{"forProvider": map[string]any{}}, "status": map[string]any{"atProvider": map[string]any{"id": id}},
		}}
		o.SetName(name)
		o.SetAnnotations(map[string]string{managed.AnnotationName: external})
		return factOf(Kind{}, o, Proposal{Name: external}, Identity{}, nil)
	}
	for reason, test := range map[string]struct {
		facts []Fact
		want  []Class
	}{
		"ARM ids in two cases":     {[]Fact{observed("one", "/subscriptions/A/x", ""), observed("two", "/subscriptions/a/X", "")}, []Class{Duplicate, Duplicate}},
		"one id under two names":   {[]Fact{observed("one", "ACME/anna", "acme/anna"), observed("two", "acme/anna", "acme/anna")}, []Class{Duplicate, Duplicate}},
		"two ids under two names":  {[]Fact{observed("one", "a", "1"), observed("two", "b", "2")}, []Class{Canonical, Canonical}},
		"names of different cases": {[]Fact{observed("one", "a", ""), observed("two", "A", "")}, []Class{Canonical, Canonical}},
	} {
		t.Run(reason, func(t *testing.T) {
			for k, i := range PlanFor(Scan{Kind: testKind, Facts: test.facts}) {
				if i.Class != test.want[k] {
					t.Errorf("%s is %s, want %s", i.Name, i.Class, test.want[k])
				}
				checkFix(t, i)
			}
		})
	}
}

func TestSourcePatch(t *testing.T) {
	i := PlanFor(Scan{Kind: testKind, Facts: []Fact{fact(func(f *Fact) { f.Owner = Owner{Manager: "flux", Source: true} })}})[0]
	const want = `{"apiVersion":"example.org/v1","kind":"Person","metadata":{"name":"one","namespace":"ns","annotations":{"crossplane.io/external-name":"b"}}}`
	if i.SourcePatch != want {
		t.Errorf("patch is %s, want %s", i.SourcePatch, want)
	}
}
