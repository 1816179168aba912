package crossplane

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/godwit-dev/godwit/externalname"
)

// Each row is one of the table in doc.go, with the facts as they are after the answers.
func TestDecide(t *testing.T) {
	malformed := &externalname.InvalidError{Reason: externalname.ReasonNotGUID}
	found := func(matches ...match) *[]match { return &matches }
	capable := rules{canFind: true, canProve: true}
	cases := map[string]struct {
		reason string
		facts  facts
		want   action
		name   string
		err    error
	}{
		"malformed name":            {"nothing is asked, whatever else is known", facts{invalid: malformed, creating: true, bound: "b", operation: "o"}, refuse, "", malformed},
		"malformed while deleting":  {"the finalizer stays", facts{invalid: malformed, deleting: true}, refuse, "", malformed},
		"operation":                 {"it is asked first, also beside a name", facts{operation: "o", name: "a"}, askOperation, "", nil},
		"operation runs":            {"no second creation", facts{operation: "o", job: jobRunning}, reportInProgress, "", nil},
		"operation ended":           {"its key becomes the name", facts{operation: "o", job: jobEnded, jobName: "a"}, bindJob, "a", nil},
		"operation failed":          {"it has created nothing", facts{operation: "o", job: jobFailed}, reportAbsent, "", nil},
		"operation failed, named":   {"an earlier name may exist", facts{operation: "o", job: jobFailed, name: "a", bound: "a"}, askGet, "a", nil},
		"operation forgotten":       {"it may have created something", facts{operation: "o", job: jobForgotten, rules: capable}, askFind, "", nil},
		"name":                      {"it is looked up by name", facts{name: "a", bound: "b", rules: rules{findUnnamed: true, canFind: true}}, askGet, "a", nil},
		"name found":                {"also if another one was bound", facts{name: "a", bound: "b", gets: gets("a", present)}, reportPresent, "a", nil},
		"name gone":                 {"drift", facts{name: "a", bound: "a", gets: gets("a", absent)}, reportAbsent, "", nil},
		"name never found":          {"drift as well", facts{name: "a", gets: gets("a", absent)}, reportAbsent, "", nil},
		"import must exist":         {"unless the kind says otherwise", facts{name: "a", gets: gets("a", absent), rules: rules{importMustExist: true}}, refuse, "", &NeverFoundError{}},
		"import is being deleted":   {"nothing is left to import", facts{name: "a", deleting: true, gets: gets("a", absent), rules: rules{importMustExist: true}}, reportAbsent, "", nil},
		"drift of an import":        {"it was found once", facts{name: "a", bound: "a", gets: gets("a", absent), rules: rules{importMustExist: true}}, reportAbsent, "", nil},
		"renamed":                   {"the announced name is asked for", facts{name: "a", bound: "a", renaming: "b", gets: gets("a", absent)}, askGet, "b", nil},
		"renamed, found":            {"the update was carried out", facts{name: "a", bound: "a", renaming: "b", gets: gets("a", absent, "b", present)}, reportPresent, "b", nil},
		"renamed, gone":             {"neither exists", facts{name: "a", bound: "a", renaming: "b", gets: gets("a", absent, "b", absent)}, reportAbsent, "", nil},
		"edited":                    {"the bound name is asked for", facts{name: "a", bound: "b", gets: gets("a", absent)}, askGet, "b", nil},
		"edited, old one exists":    {"a creation would make a second one", facts{name: "a", bound: "b", gets: gets("a", absent, "b", present)}, refuse, "", &NameChangedError{}},
		"edited, deleting":          {"the old one would be lost", facts{name: "a", bound: "b", deleting: true, gets: gets("a", absent, "b", present)}, refuse, "", &NameChangedError{}},
		"edited, both gone":         {"drift", facts{name: "a", bound: "b", gets: gets("a", absent, "b", absent)}, reportAbsent, "", nil},
		"name removed":              {"the bound name is asked for", facts{bound: "b"}, askGet, "b", nil},
		"name removed, exists":      {"a creation would make a second one", facts{bound: "b", gets: gets("b", present)}, refuse, "", &NameChangedError{}},
		"no name":                   {"nothing is asked", facts{rules: capable}, reportAbsent, "", nil},
		"no name, compatible":       {"the spec is looked up", facts{rules: rules{canFind: true, findUnnamed: true}}, askFind, "", nil},
		"hint":                      {"the spec is looked up", facts{hint: true, rules: capable}, askFind, "", nil},
		"hint, none":                {"absent", facts{hint: true, found: found()}, reportAbsent, "", nil},
		"hint, one":                 {"it is read by name", facts{hint: true, found: found(match{name: "a"})}, askGet, "a", nil},
		"hint, one, read":           {"and bound", facts{hint: true, found: found(match{name: "a"}), gets: gets("a", present)}, reportPresent, "a", nil},
		"hint, one, just deleted":   {"absent", facts{hint: true, found: found(match{name: "a"}), gets: gets("a", absent)}, reportAbsent, "", nil},
		"hint, several":             {"none is written", facts{hint: true, found: found(match{name: "a"}, match{name: "b"})}, refuse, "", &MultipleMatchesError{}},
		"interrupted":               {"the spec is looked up", facts{creating: true, rules: capable}, askFind, "", nil},
		"interrupted, operation":    {"operations are looked up first", facts{creating: true, rules: rules{canFind: true, canFindOperation: true}}, searchOperation, "", nil},
		"interrupted, no operation": {"then the spec", facts{creating: true, jobSearched: true, rules: rules{canFind: true, canFindOperation: true}}, askFind, "", nil},
		"interrupted, no Find":      {"the user has to find out", facts{creating: true}, refuse, "", ErrOutcomeUnknown},
		"interrupted, ours":         {"proven", facts{creating: true, found: found(match{"a", true}, match{"b", false}), gets: gets("a", present), rules: capable}, reportPresent, "a", nil},
		"interrupted, several ours": {"which one is not known", facts{creating: true, found: found(match{"a", true}, match{"b", true}), rules: capable}, refuse, "", &MultipleMatchesError{}},
		"interrupted, foreign":      {"not adopted, not created", facts{creating: true, found: found(match{"a", false}), rules: capable}, refuse, "", &AdoptionRefusedError{}},
		"interrupted, none yet":     {"a request may be under way", facts{creating: true, fresh: true, found: found(), rules: capable}, refuse, "", ErrOutcomeUnknown},
		"interrupted, foreign yet":  {"a request may be under way", facts{creating: true, fresh: true, found: found(match{"a", false}), rules: capable}, refuse, "", ErrOutcomeUnknown},
		"interrupted, none":         {"nothing was created", facts{creating: true, found: found(), rules: capable}, reportAbsent, "", nil},
		"interrupted, deleting":     {"the finalizer stays until it is known", facts{creating: true, deleting: true, fresh: true, found: found(), rules: capable}, refuse, "", ErrOutcomeUnknown},
		"interrupted, others":       {"nothing of ours is left to delete", facts{creating: true, deleting: true, found: found(match{"a", false}), rules: capable}, reportAbsent, "", nil},
		"interrupted, no proof":     {"the match may be ours", facts{creating: true, deleting: true, found: found(match{"a", false}), rules: rules{canFind: true}}, refuse, "", &AdoptionRefusedError{}},
		"interrupted drift":         {"the name that is gone is no answer", facts{creating: true, name: "a", bound: "a", gets: gets("a", absent), rules: capable}, askFind, "", nil},
		"no Create":                 {"neither success nor Update", facts{name: "a", bound: "a", mustExist: true, gets: gets("a", absent)}, refuse, "", errMissing},
		"no Create, deleting":       {"nothing is left", facts{name: "a", bound: "a", mustExist: true, deleting: true, gets: gets("a", absent)}, reportAbsent, "", nil},
		"key can't be a name":       {"refused before it is created", facts{specInvalid: malformed}, refuse, "", malformed},
		"key, deleting":             {"nothing is created", facts{specInvalid: malformed, deleting: true}, reportAbsent, "", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := decide(tc.facts)
			if got.action != tc.want || tc.name != "" && got.name != tc.name {
				t.Errorf("decide = %s %q (%v), want %s %q: %s", got.action, got.name, got.err, tc.want, tc.name, tc.reason)
			}
			if tc.want == refuse && !errors.Is(got.err, tc.err) && !sameType(got.err, tc.err) {
				t.Errorf("error is %v, want %T: %s", got.err, tc.err, tc.reason)
			}
		})
	}
}

func gets(list ...any) map[string]presence {
	m := map[string]presence{}
	for i := 0; i < len(list); i += 2 {
		m[list[i].(string)] = list[i+1].(presence)
	}
	return m
}

// sameType compares the types of errors that say more than which they are.
func sameType(got, want error) bool { return reflect.TypeOf(got) == reflect.TypeOf(want) }

// decide ends, whatever the object says and the external system answers. It never reports absent
// what exists under a name that the object knows, and every action occurs.
func TestDecideEnds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[action]int{}
	for range 300_000 {
		says, answers := random.Uint32(), random.Uint32()
		seen[decideAll(t, says, answers)]++
		if t.Failed() {
			return
		}
	}
	for _, end := range []action{reportPresent, reportAbsent, reportInProgress, refuse} {
		if seen[end] < 1000 {
			t.Errorf("%s occurred %d times, so that little is shown: %v", end, seen[end], seen)
		}
	}
}

// decideAll answers every question by the bits of answers.
func decideAll(t *testing.T, says, answers uint32) action {
	t.Helper()
	bit := func(n uint) bool { return says>>n&1 == 1 }
	pick := func(n uint, text string) string {
		if bit(n) {
			return text
		}
		return ""
	}
	answer := func(n uint) bool { return answers>>n&1 == 1 }
	facts := facts{
		name: pick(0, "a"), bound: pick(1, "b"), renaming: pick(2, "c"), operation: pick(3, "o"), hint: bit(4) && bit(9),
		creating: bit(5), fresh: bit(6), deleting: bit(7), mustExist: bit(8), gets: map[string]presence{},
		rules: rules{canFind: bit(9), canProve: bit(10), canFindOperation: bit(11), findUnnamed: bit(12) && bit(9), importMustExist: bit(13)},
	}
	exists := map[string]bool{"a": answer(0), "b": answer(1), "c": answer(2), "d": answer(3), "j": answer(4)}
	for range maxQuestions {
		switch d := decide(facts); d.action {
		case askGet:
			facts.gets[d.name] = absent
			if exists[d.name] {
				facts.gets[d.name] = present
			}
		case askFind:
			facts.found = &[]match{}
			if exists["d"] {
				*facts.found = append(*facts.found, match{"d", answer(5)})
			}
		case askOperation:
			facts.job, facts.jobName = job(answers>>6&3)+1, "j"
		case searchOperation:
			facts.jobSearched = true
			if answer(8) {
				facts.operation, facts.job = "o", 0
			}
		case bindJob:
			facts.name, facts.bound, facts.operation, facts.creating = d.name, d.name, "", false
		case reportAbsent:
			for _, name := range []string{facts.name, facts.bound} {
				if name != "" && exists[name] && facts.job != jobForgotten && (facts.operation == "" || facts.job == jobFailed) {
					t.Errorf("absent, although %q exists: %+v", name, facts)
				}
			}
			if facts.mustExist && !facts.deleting {
				t.Errorf("absent, although the policies don't allow Create: %+v", facts)
			}
			return d.action
		case reportPresent:
			if !exists[d.name] {
				t.Errorf("%q is present, which does not exist: %+v", d.name, facts)
			}
			return d.action
		default:
			return d.action
		}
	}
	t.Errorf("no decision: %+v", facts)
	return refuse
}
