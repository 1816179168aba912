package fleet

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/godwit-dev/godwit/externalname/internal/managed"
)

// Saved names of any number have parts that a ConfigMap can hold, and are loaded unchanged.
func TestParts(t *testing.T) {
	for _, n := range []int{0, 1, 10_000} {
		var names []Name
		for i := range n {
			names = append(names, Name{Resource: "persons.example.org", Namespace: "ns", Name: fmt.Sprintf("p-%d", i), ExternalName: strings.Repeat("ü/%2F \"", 30) + fmt.Sprint(i)})
		}
		parts, err := partsOf(names)
		if err != nil {
			t.Fatal(err)
		}
		var stored []corev1.ConfigMap
		for i, part := range parts {
			if len(part) > partBytes {
				t.Errorf("part %d of %d names has %d bytes, want at most %d", i, n, len(part), partBytes)
			}
			cm := corev1.ConfigMap{Data: map[string]string{partKey: part}}
			cm.Name = partName("names", "saved", i)
			stored = append(stored, cm)
		}
		slices.Reverse(stored) // an API server lists them in another order
		at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		book, err := readParts(at.Format(savedForm), stored)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(NewSavedNames(at, names), book); diff != "" {
			t.Errorf("%d names: %s", n, diff)
		}
	}
}

// The newest complete saved names count: a process that is killed between two parts leaves the earlier ones.
func TestNewestComplete(t *testing.T) {
	part := func(saved string, i int, of string) corev1.ConfigMap {
		cm := corev1.ConfigMap{}
		cm.Name, cm.Labels, cm.Annotations = partName("names", saved, i), map[string]string{labelSaved: saved}, map[string]string{annotationParts: of}
		return cm
	}
	for reason, test := range map[string]struct {
		parts []corev1.ConfigMap
		want  string
		n     int
	}{
		"none":       {nil, "", 0},
		"one":        {[]corev1.ConfigMap{part("1", 0, "1")}, "1", 1},
		"both":       {[]corev1.ConfigMap{part("1", 0, "1"), part("2", 0, "2"), part("2", 1, "2")}, "2", 2},
		"killed":     {[]corev1.ConfigMap{part("1", 0, "2"), part("1", 1, "2"), part("2", 0, "2")}, "1", 2},
		"incomplete": {[]corev1.ConfigMap{part("2", 0, "2")}, "", 0},
	} {
		t.Run(reason, func(t *testing.T) {
			saved, parts := newestComplete(test.parts)
			if saved != test.want || len(parts) != test.n {
				t.Errorf("the newest is %q with %d parts, want %q with %d", saved, len(parts), test.want, test.n)
			}
		})
	}
}

func TestReadSavedNames(t *testing.T) {
	for text, ok := range map[string]bool{
		`{"apiVersion":"externalname.godwit.dev/v1alpha1","kind":"ExternalNameBook","names":[]}`: true,
		`{"apiVersion":"v1","kind":"ConfigMap"}`:                                                 false,
		`names`:                                                                                  false,
		``:                                                                                       false,
	} {
		if _, err := ReadSavedNames([]byte(text)); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A journal that another client has changed is an error, and never a renaming.
func FuzzJournal(f *testing.F) {
	for _, seed := range []string{`{"phase":"Pausing","from":"a","to":"b"}`, `{"phase":"Renamed","from":null,"to":"b"}`, `{`, `null`, `[]`, `{"phase":"Gone"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		m := managedWith(map[string]string{AnnotationJournal: value, managed.AnnotationName: "a"})
		j, err := readJournal(m)
		if err == nil && (j == nil || j.To == "") {
			t.Errorf("journal %q is read as %+v", value, j)
		}
		s := situation{exists: true, name: m.ExternalName(), journal: j, journalErr: err, current: "a", proposed: "b"}
		if d := decideStep(s); err != nil && d.phase != PhaseFailed {
			t.Errorf("with journal %q the next step is %+v", value, d)
		}
	})
}
