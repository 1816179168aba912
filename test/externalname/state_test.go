package externalname_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/externalname/crossplane"
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/format/formattest"
	"github.com/godwit-dev/godwit/test/fault"
	"github.com/godwit-dev/godwit/walk"
)

// TestStateOfOtherReleases: a renaming that v0.1.0 has begun is ended, and its name book is read. What a newer release has stored is
// left alone by the commands and by the provider.
func TestStateOfOtherReleases(t *testing.T) {
	w := newWorld(t)
	run(w, persons(w.wire), options{})
	all := w.legacyPersons(2)
	wire := &fault.Transport{At: 1, Fault: fault.All()["killed after the write"]}
	killed := w.fleetOf(wire, fleet.Options{})
	items := w.plan(killed, fleet.FromScheme(scheme, nil))[:1]
	wire.Run(t.Context(), func(ctx context.Context) { _, _ = killed.Apply(ctx, items) })

	f := w.fleetOf(&fault.Transport{}, fleet.Options{})
	ours := get(w, all[0]).Annotations[fleet.AnnotationJournal]
	var now struct {
		From, To, Creations string
		Identity            map[string]string
	}
	if err := json.Unmarshal([]byte(ours), &now); err != nil {
		t.Fatal(err)
	}
	frozen := strings.NewReplacer(
		`"old "`, quoted(t, now.From), `"old"`, quoted(t, now.To), `{"name":"5891b5b522d5df08"}`, quoted(t, now.Identity),
		`"2026-11-01T00:00:00Z,2026-11-01T00:00:01Z,"`, quoted(t, now.Creations),
	).Replace(formattest.Frozen(t, "renaming.json"))
	frozen, _, _ = strings.Cut(frozen, `,"earlier"`)
	frozen += "}"
	// A newer release has the provider only observe the new name at first.
	same := strings.NewReplacer(`"Observing"`, `"Renaming"`, `,"policies":["*"]`, ``).Replace(ours)
	if same == ours || same != frozen {
		t.Errorf("the journal is otherwise than that of %s:\n got %s\nwant %s", formattest.Oldest, ours, frozen)
	}
	w.annotate(all[0], fleet.AnnotationJournal, frozen)
	w.patch(all[0], `{"spec":{"managementPolicies":["*"]}}`)
	items = w.plan(f, fleet.FromScheme(scheme, nil))
	if i := itemOf(t, items, all[0].Name); i.Action != fleet.Resume {
		t.Fatalf("%s is %s, %s: %s", i.Name, i.Action, i.Reason, i.Message)
	}
	if r := w.apply(f, items); r.Count(fleet.PhaseRenamed) != 2 {
		t.Errorf("resumed: %+v", r.Results)
	}
	w.checkCanonical(all)

	// A newer release has annotated one.
	w.annotate(all[1], format.Annotation, "2")
	w.awaitPerson(all[1], "refused", func(p *person) bool {
		c := p.GetCondition("Synced")
		return c.Status == corev1.ConditionFalse && strings.Contains(c.Message, "a newer release of the provider wrote them")
	})
	i := itemOf(t, w.plan(f, fleet.FromScheme(scheme, nil)), all[1].Name)
	if i.Action != fleet.Skip || i.Reason != fleet.ReasonNewerFormat {
		t.Errorf("%s is %s, %s: %s", i.Name, i.Action, i.Reason, i.Message)
	}
	back, err := f.Rollback(t.Context())
	if err != nil || back.Count(fleet.PhaseFailed) != 1 || back.Count(fleet.PhaseRolledBack) != 1 {
		t.Errorf("%v: %+v", err, back.Results)
	}
	if crossplane.AnnotationFormat != format.Annotation {
		t.Errorf("two packages have two annotations: %s and %s", crossplane.AnnotationFormat, format.Annotation)
	}
	w.annotate(all[1], format.Annotation, "")
	w.checkBooks()
}

// checkBooks stores the parts of name books as releases do.
func (w *world) checkBooks() {
	w.t.Helper()
	client, err := kubernetes.NewForConfig(shared.Config())
	if err != nil {
		w.t.Fatal(err)
	}
	apply := func(text string) {
		w.t.Helper()
		part := &corev1.ConfigMap{}
		if err := yaml.UnmarshalStrict([]byte(text), part); err != nil {
			w.t.Fatal(err)
		}
		part.Namespace = w.namespace
		if _, err := client.CoreV1().ConfigMaps(w.namespace).Create(w.t.Context(), part, metav1.CreateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
	store, err := fleet.NewStore(shared.Config(), walk.NewLimiter(walk.Limits{}), w.namespace, "names")
	if err != nil {
		w.t.Fatal(err)
	}
	apply(formattest.Frozen(w.t, "namebook-configmap.yaml"))
	book, err := store.Load(w.t.Context())
	if err != nil || len(book.Names) != 1 || book.Names[0].Name != "one" {
		w.t.Errorf("the book of %s is read as %+v: %v", formattest.Oldest, book, err)
	}
	apply(formattest.Newer(w.t, "namebook-configmap.yaml"))
	var newer *format.NewerError
	if b, err := store.Load(w.t.Context()); !errors.As(err, &newer) {
		w.t.Errorf("a book of a newer release is read as %+v: %v", b, err)
	}
	if err := store.Save(w.t.Context(), fleet.NewSavedNames(time.Now(), book.Names)); !errors.As(err, &newer) {
		w.t.Errorf("a book is saved over one of a newer release: %v", err)
	}
	list, err := client.CoreV1().ConfigMaps(w.namespace).List(w.t.Context(), metav1.ListOptions{LabelSelector: "godwit.dev/external-name-book=names"})
	if err != nil || len(list.Items) != 2 {
		w.t.Errorf("%d ConfigMaps, want the two as they were: %v", len(list.Items), err)
	}
}

func quoted(t *testing.T, value any) string {
	t.Helper()
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
