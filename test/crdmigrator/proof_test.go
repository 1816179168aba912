package crdmigrator_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/crdmigrator/etcdverify"
	"github.com/godwit-dev/godwit/internal/storageversion"
)

// proofPage has the table of what tells a migration from what looks like one.
const proofPage = "../../docs/explanation/proof-without-etcd.md"

// proof is something that a client can look at. Two clusters that give one answer are the same to it.
type proof struct {
	name   string
	answer func(*subject) string
}

// subject is a CRD with what a client knew before the migration.
type subject struct {
	*widgets
	hash    string // storageVersionHash, when v1 was the storage version
	changed uint64 // resourceVersion of a list right after the storage version changed
}

// proofs are in the order of the page. Those that write come last.
var proofs = []proof{
	{"etcd, counted by `godwit crd verify`", (*subject).etcd},
	{"`status.storedVersions` is the storage version alone", (*subject).storedVersions},
	{"`resourceVersion` of each object is newer than the change of the storage version", (*subject).newer},
	{"a list at the storage version, with `managedFields`", (*subject).list},
	{"`storageVersionHash` in discovery", (*subject).storageVersionHash},
	{"metrics of the API server: `apiserver_storage_objects`, `apiserver_resource_objects`", (*subject).metrics},
	{"an empty patch as a dry run leaves `resourceVersion`", func(s *subject) string { return s.patched(metav1.DryRunAll) }},
	{"an empty patch leaves `resourceVersion`: a second `godwit crd run` reports every object as unchanged", (*subject).secondRun},
}

// deceptions look like a completed migration in some way. Objects are at v1 in etcd after each.
var deceptions = []struct {
	name string
	make func(*widgets)
}{
	{"not begun", func(*widgets) {}},
	{"trimmed without a rewrite", func(w *widgets) { w.setStoredVersions("v2") }},
	{"migrated, then put back by an API server that lagged behind", func(w *widgets) {
		key := w.key("w-0003")
		old := w.values()[key]
		w.mustBeMigrated(w.mustMigrate(w.quickMigrator(storageversion.Options{})), 10)
		w.put(key, old) // as TestAcceptedStaleLeasePutsObjectsBack has a real server do
	}},
}

// TestWhatProvesAMigration plays one migration, and what only looks like it, and asks each proof, with access to etcd and
// without. The page says which proofs give another answer for the real one.
func TestWhatProvesAMigration(t *testing.T) {
	t.Parallel()
	migrated := newSubject(t)
	migrated.mustBeMigrated(migrated.mustMigrate(migrated.quickMigrator(storageversion.Options{})), 10)
	want := map[string]string{}
	for _, p := range proofs {
		want[p.name] = p.answer(migrated)
	}
	lines := []string{"| what a client sees | " + strings.Join(deceived(), " | ") + " |", "|---|" + strings.Repeat("---|", len(deceptions))}
	tells := map[string][]string{}
	for _, d := range deceptions {
		s := newSubject(t)
		d.make(s.widgets)
		for _, p := range proofs {
			cell := "no"
			if got := p.answer(s); got != want[p.name] {
				cell = "yes"
				t.Logf("%s: %s: %s, and not %s", d.name, p.name, got, want[p.name])
			}
			tells[p.name] = append(tells[p.name], cell)
		}
		s.mustBeStored("the last proof also repairs "+d.name, map[string]int{"v2": 10})
	}
	for _, p := range proofs {
		lines = append(lines, "| "+p.name+" | "+strings.Join(tells[p.name], " | ")+" |")
	}
	if diff := cmp.Diff(tableOf(t, proofPage), strings.Join(lines, "\n")); diff != "" {
		t.Errorf("%s (-page +this server):\n%s", proofPage, diff)
	}
}

func deceived() []string {
	var all []string
	for _, d := range deceptions {
		all = append(all, d.name)
	}
	return all
}

// tableOf is the first table of a page.
func tableOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(regexp.MustCompile(`(?m)(^\|.*\n)+`).FindString(string(text)))
}

// newSubject has ten objects at v1, and v2 as the storage version.
func newSubject(t *testing.T) *subject {
	t.Helper()
	s := &subject{widgets: newWidgets(t, shared)}
	s.fill("v1", 10)
	s.hash = s.discoveredHash("v1")
	s.flip()
	list, err := s.at("v2").List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	s.changed = s.number(list.GetResourceVersion())
	return s
}

func (s *subject) number(resourceVersion string) uint64 {
	s.t.Helper()
	n, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *subject) etcd() string {
	resource := schema.GroupResource{Group: s.group, Resource: s.plural}
	count, err := etcdverify.Scan(s.t.Context(), etcdKV{s.plane.Etcd()}, etcdverify.DefaultPrefix, resource)
	if err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprintf("proven: %t", count.Proven("v2"))
}

func (s *subject) storedVersions() string { return s.widgets.storedVersions() }

func (s *subject) objects() []unstructured.Unstructured {
	s.t.Helper()
	list, err := s.at("v2").List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return list.Items
}

// list is what a list says of versions: at which one it was asked for, and through which one each manager wrote.
func (s *subject) list() string {
	said := map[string]bool{}
	for _, o := range s.objects() {
		said[strings.TrimPrefix(o.GetAPIVersion(), s.group)] = true
		for _, e := range o.GetManagedFields() {
			said[e.Manager+" "+strings.TrimPrefix(e.APIVersion, s.group)] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(said)), ", ")
}

func (s *subject) newer() string {
	n := 0
	for _, o := range s.objects() {
		if s.number(o.GetResourceVersion()) > s.changed {
			n++
		}
	}
	return fmt.Sprintf("%d newer", n)
}

// storageVersionHash is that of the version which the server writes, and not that of any object.
func (s *subject) storageVersionHash() string {
	return fmt.Sprintf("changed: %t", s.discoveredHash("v2") != s.hash)
}

func (s *subject) discoveredHash(version string) string {
	s.t.Helper()
	list, err := s.admission().Discovery().ServerResourcesForGroupVersion(s.group + "/" + version)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range list.APIResources {
		if r.Name == s.plural {
			return r.StorageVersionHash
		}
	}
	s.t.Fatalf("%s is not in discovery", s.name)
	return ""
}

var labelName = regexp.MustCompile(`(\w+)="`)

// metrics are the labels of the counts of objects: none is a version. The API server drops the count of a resource whose
// CRD has changed, and counts again within two minutes, so that this reads the counts of all resources.
func (s *subject) metrics() string {
	var found []string
	await(s.t, "the API server to count objects", func() bool {
		text, err := s.admission().Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if metric, _, ok := strings.Cut(line, "{"); ok &&
				slices.Contains([]string{"apiserver_storage_objects", "apiserver_resource_objects"}, metric) {
				for _, m := range labelName.FindAllStringSubmatch(line, -1) {
					found = append(found, metric+" by "+m[1])
				}
			}
		}
		return len(found) > 0
	})
	slices.Sort(found)
	return strings.Join(slices.Compact(found), ", ")
}

// patched counts the objects whose resourceVersion an empty patch changes.
func (s *subject) patched(dryRun ...string) string {
	s.t.Helper()
	changed := 0
	var errs []error
	for _, o := range s.objects() {
		after, err := s.at("v2").Patch(s.t.Context(), o.GetName(), types.MergePatchType, []byte("{}"), metav1.PatchOptions{DryRun: dryRun})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if after.GetResourceVersion() != o.GetResourceVersion() {
			changed++
		}
	}
	if err := errors.Join(errs...); err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprintf("%d changed", changed)
}

// secondRun puts the old version back into storedVersions and migrates again, as a user without access to etcd can.
func (s *subject) secondRun() string {
	s.t.Helper()
	s.setStoredVersions("v1", "v2")
	report := s.mustMigrate(s.quickMigrator(storageversion.Options{}))
	if !report.Trimmed {
		s.t.Errorf("second run: %+v, want it to trim", report.Storage)
	}
	return fmt.Sprintf("every object unchanged: %t", report.Storage.Counts.Unchanged == report.Storage.Counts.Total())
}
