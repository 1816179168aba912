package evidence

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/internal/kube/kubetest"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
)

var (
	flip = kubetest.Flip

	// later is a moment by which everything about flip has settled.
	later = flip.Add(time.Hour)
)

// restartedAt is the checkpoint of a CRD that changed under runs so long ago.
func restartedAt(now time.Time, ago ...time.Duration) Checkpoint {
	c := Checkpoint{CRDUID: "u1", Generation: 7, StorageVersion: "v2"}
	for _, d := range ago {
		c.Restarts = append(c.Restarts, metav1.NewTime(now.Add(-d)))
	}
	return c
}

// The CRD of these tests has UID u1 and generation 7 and stores v2.
func TestCheckpointResume(t *testing.T) {
	saved := Checkpoint{CRDUID: "u1", Generation: 7, StorageVersion: "v2", ResourceVersion: "100", Cursor: "ns/a", Restarts: restartedAt(flip, time.Minute).Restarts}
	with := func(edit func(*Checkpoint)) Checkpoint { c := saved; edit(&c); return c }
	cases := map[string]struct {
		reason     string
		checkpoint Checkpoint
		edit       kubetest.Edit
		want       bool
	}{
		"same CRD": {reason: "nothing changed", checkpoint: saved, want: true},
		"one change": {
			reason:     "v2 before and v2 after: no other spec was ever in force",
			checkpoint: with(func(c *Checkpoint) { c.Generation = 6 }), want: true,
		},
		"two changes": {
			reason:     "a flip there and back may hide between them",
			checkpoint: with(func(c *Checkpoint) { c.Generation = 5 }),
		},
		"an older CRD": {
			reason:     "generations never go back but by a restore",
			checkpoint: with(func(c *Checkpoint) { c.Generation = 8 }),
		},
		"one change, a flip": {
			reason:     "the evidence is about v1",
			checkpoint: with(func(c *Checkpoint) { c.Generation, c.StorageVersion = 6, "v1" }),
		},
		"another storage version at the same generation": {
			reason:     "what contradicts itself is void",
			checkpoint: with(func(c *Checkpoint) { c.StorageVersion = "v1" }),
		},
		"created again": {
			reason:     "the same name and generation of another CRD",
			checkpoint: with(func(c *Checkpoint) { c.CRDUID = "u0" }),
		},
		"before the first page": {
			reason:     "a cursor without C proves nothing",
			checkpoint: with(func(c *Checkpoint) { c.ResourceVersion = "" }),
		},
		"none": {reason: "no checkpoint", checkpoint: Checkpoint{}},
		"none, for a CRD without anything": {
			reason: "zero equals zero, but proves nothing",
			edit: func(crd *apiextensionsv1.CustomResourceDefinition) {
				*crd = apiextensionsv1.CustomResourceDefinition{}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			crd := kubetest.Widgets()
			if tc.edit != nil {
				tc.edit(crd)
			}
			want := Checkpoint{}
			if tc.want {
				want = tc.checkpoint
				want.Generation = crd.Generation
			}
			before := tc.checkpoint
			got, ok := tc.checkpoint.Resume(crd)
			if ok != tc.want {
				t.Errorf("resumes = %t, want %t: %s", ok, tc.want, tc.reason)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\nresumed (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, tc.checkpoint); diff != "" {
				t.Errorf("Resume changed what it was given:\n%s", diff)
			}
		})
	}
}

// A run that watches a CRD change step by step keeps its evidence, one
// that slept through two changes does not.
func TestCheckpointResumeStepByStep(t *testing.T) {
	at := func(generation int64) *apiextensionsv1.CustomResourceDefinition {
		return kubetest.Widgets(func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Generation = generation })
	}
	c := Checkpoint{CRDUID: "u1", Generation: 7, StorageVersion: "v2", ResourceVersion: "100"}
	for generation := int64(8); generation < 12; generation++ {
		next, ok := c.Resume(at(generation))
		if !ok {
			t.Fatalf("generation %d: the evidence was lost at a single change", generation)
		}
		if c.Generation != generation-1 {
			t.Fatalf("the checkpoint itself moved to generation %d", c.Generation)
		}
		c = next
	}
	if _, ok := c.Resume(at(13)); ok {
		t.Error("resumed over two changes")
	}
}

func TestCheckpointBegin(t *testing.T) {
	now := later
	earlier := func(generation int64, ago ...time.Duration) Checkpoint {
		c := restartedAt(now, ago...)
		c.Generation, c.ResourceVersion, c.Cursor = generation, "100", "ns/a"
		return c
	}
	cases := map[string]struct {
		reason     string
		checkpoint Checkpoint
		restarts   []time.Duration // ago
	}{
		"the first run": {reason: "nothing to restart from", checkpoint: Checkpoint{}},
		"the same generation": {
			reason:     "a run that lost its evidence otherwise, as after a restore, was not disturbed by the spec",
			checkpoint: earlier(7),
		},
		"another generation": {
			reason:     "the CRD changed under the run before",
			checkpoint: earlier(5), restarts: []time.Duration{0},
		},
		"again and again": {
			reason:     "restarts add up, oldest first",
			checkpoint: earlier(5, 40*time.Minute, 10*time.Minute), restarts: []time.Duration{40 * time.Minute, 10 * time.Minute, 0},
		},
		"long ago": {
			reason:     "what is an hour old is forgotten, what is not quite, is not",
			checkpoint: earlier(7, 2*time.Hour, time.Hour, time.Hour-time.Second), restarts: []time.Duration{time.Hour - time.Second},
		},
		"created again": {
			reason:     "another CRD's restarts are not this one's",
			checkpoint: func() Checkpoint { c := earlier(3, time.Minute); c.CRDUID = "u0"; return c }(),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := Checkpoint{CRDUID: "u1", Generation: 7, StorageVersion: "v2", Restarts: restartedAt(now, tc.restarts...).Restarts}
			if diff := cmp.Diff(want, tc.checkpoint.Begin(kubetest.Widgets(), now)); diff != "" {
				t.Errorf("%s\ncheckpoint (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAnnotationJournalLoad(t *testing.T) {
	whole := Checkpoint{
		CRDUID: "u1", Generation: 7, StorageVersion: "v2", ResourceVersion: "100", Cursor: `ns/"odd"<&>`,
		Restarts: []metav1.Time{metav1.NewTime(flip.Local())},
	}
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	annotated := func(text string) map[string]string {
		return map[string]string{CheckpointAnnotation: text, "other": "{}"}
	}
	cases := map[string]struct {
		reason      string
		annotations map[string]string
		want        Checkpoint
	}{
		"round trip":      {"what was saved is loaded", annotated(string(text)), whole},
		"no annotations":  {"a first run", nil, Checkpoint{}},
		"another's":       {"not ours", map[string]string{"other": string(text)}, Checkpoint{}},
		"empty":           {"garbage", annotated(""), Checkpoint{}},
		"null":            {"nothing", annotated("null"), Checkpoint{}},
		"cut off":         {"half a checkpoint is none, whatever was read before the cut", annotated(string(text[:len(text)-2])), Checkpoint{}},
		"trailing bytes":  {"garbage", annotated(string(text) + "x"), Checkpoint{}},
		"wrong types":     {"fields read before the wrong one must not survive", annotated(`{"crdUID":"u1","resourceVersion":"100","generation":"seven"}`), Checkpoint{}},
		"wrong time":      {"nor these", annotated(`{"crdUID":"u1","resourceVersion":"100","restarts":["yesterday"]}`), Checkpoint{}},
		"a number":        {"garbage", annotated("7"), Checkpoint{}},
		"a newer release": {"unknown fields do not void it", annotated(`{"crdUID":"u1","generation":7,"storageVersion":"v2","flavour":1}`), Checkpoint{CRDUID: "u1", Generation: 7, StorageVersion: "v2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			crd := kubetest.Widgets(func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Annotations = tc.annotations })
			got, err := (&AnnotationJournal{}).Load(t.Context(), crd)
			if err != nil {
				t.Fatalf("%s\nload: %v; a checkpoint that can't be understood is none", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\ncheckpoint (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzAnnotationJournalLoad: whatever stands in the annotation, a run begins.
func FuzzAnnotationJournalLoad(f *testing.F) {
	f.Add(`{"crdUID":"u1","generation":7,"storageVersion":"v2","resourceVersion":"100"}`)
	f.Add(`{"crdUID":"u1","generation":9223372036854775807,"storageVersion":"v2","resourceVersion":"-1"}`)
	f.Add("\x00")
	f.Fuzz(func(t *testing.T, text string) {
		crd := kubetest.Widgets(func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Annotations = map[string]string{CheckpointAnnotation: text}
		})
		c, err := (&AnnotationJournal{}).Load(t.Context(), crd)
		if err != nil {
			t.Fatalf("load %q: %v", text, err)
		}
		if resumed, ok := c.Resume(crd); ok {
			if resumed.CRDUID != crd.UID || resumed.StorageVersion != "v2" || resumed.Generation != 7 || resumed.ResourceVersion == "" {
				t.Errorf("%q resumes as %+v", text, resumed)
			}
		}
		if begun := c.Begin(crd, later); begun.ResourceVersion != "" || begun.Cursor != "" || begun.CRDUID != crd.UID {
			t.Errorf("%q begins as %+v", text, begun)
		}
	})
}

func TestCheckpointIsOnlyForTheSameRequest(t *testing.T) {
	made := func(settle time.Duration, accepted bool) Checkpoint {
		return Checkpoint{
			CRDUID: "u1", Generation: 7, StorageVersion: "v2", ResourceVersion: "100",
			Settled: metav1.Duration{Duration: settle}, AcceptedStaleLeases: accepted,
		}
	}
	cases := map[string]struct {
		reason     string
		checkpoint Checkpoint
		terms      settle.Terms
		want       bool
	}{
		"the same":           {"default and default", made(settle.Default, false), settle.Terms{}, true},
		"stricter than now":  {"more was waited than is asked", made(settle.Default, false), settle.Terms{Settle: time.Second}, true},
		"laxer than now":     {"a demo's settle time is no evidence for a default run", made(2*time.Second, false), settle.Terms{}, false},
		"no time, no demand": {"negative means none", made(0, false), settle.Terms{Settle: -1}, true},
		"accepted before":    {"a server with a stale lease may have put objects back since", made(settle.Default, true), settle.Terms{}, false},
		"accepted again":     {"the user accepts it again", made(settle.Default, true), settle.Terms{AcceptStaleLeases: true}, true},
	}
	for name, tc := range cases {
		if got := tc.checkpoint.Holds(kubetest.Widgets(), tc.terms); got != tc.want {
			t.Errorf("%s: holds = %t, want %t: %s", name, got, tc.want, tc.reason)
		}
	}
}

func TestNewer(t *testing.T) {
	cases := map[string]struct {
		reason string
		a, b   string
		want   bool
		fails  bool
	}{
		"newer":             {reason: "written later", a: "101", b: "100", want: true},
		"same":              {reason: "C itself was there before the first write", a: "100", b: "100"},
		"older":             {reason: "written before", a: "99", b: "100"},
		"more digits":       {reason: "numbers, not words", a: "1000", b: "999", want: true},
		"fewer digits":      {reason: "numbers, not words", a: "999", b: "1000"},
		"beyond 64 bits":    {reason: "no bound on the length", a: "99999999999999999999999", b: "99999999999999999999998", want: true},
		"empty":             {reason: "no version is no evidence", a: "", b: "100", fails: true},
		"zero":              {reason: "0 is never an object's", a: "0", b: "100", fails: true},
		"an opaque version": {reason: "not an API server's", a: "abc", b: "100", fails: true},
		"garbage in C":      {reason: "an annotation that a user edited", a: "101", b: "1e3", fails: true},
		"leading zero":      {reason: "not as the server writes it", a: "101", b: "0100", fails: true},
		"negative":          {reason: "not as the server writes it", a: "101", b: "-1", fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Newer(tc.a, tc.b)
			if (err != nil) != tc.fails {
				t.Fatalf("error %v, want one: %t: %s", err, tc.fails, tc.reason)
			}
			if got != tc.want {
				t.Errorf("Newer(%q, %q) = %t, want %t: %s", tc.a, tc.b, got, tc.want, tc.reason)
			}
		})
	}
}
