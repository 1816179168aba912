package lineage

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Index says which revision of a namespace replaces which.
type Index struct {
	replacements map[string][]Replacement // by the name of the source
	noted        map[string]string        // sources, by the name of the replacement that they note
	rolledBack   map[string]string        // sources that were rolled back, by the name of the replacement
}

// Replacement is a revision that says where it comes from.
type Replacement struct {
	Name string
	From types.UID
}

// NewIndex is an index of no revisions.
func NewIndex() *Index {
	return &Index{replacements: map[string][]Replacement{}, noted: map[string]string{}, rolledBack: map[string]string{}}
}

// Add reads the annotations of one revision.
func (x *Index) Add(r *appsv1.ControllerRevision) {
	for uid, from := range SourcesOf(r) {
		x.replacements[from] = append(x.replacements[from], Replacement{r.Name, uid})
	}
	to := NotedReplacement(r)
	if to == "" {
		return
	}
	x.noted[to] = r.Name
	if first := x.rolledBack[to]; !RolledBackAt(r).IsZero() && (first == "" || r.Name < first) {
		x.rolledBack[to] = r.Name
	}
}

// AddRollbacks makes each source that was rolled back the replacement of its own replacement
// where that is gone: late references to it are repointed to the source. Call it after the last
// Add.
func (x *Index) AddRollbacks() {
	for to, source := range x.rolledBack {
		if len(x.replacements[to]) == 0 {
			x.replacements[to] = []Replacement{{Name: source}}
		}
	}
}

// Replacements are the revisions that name a source.
func (x *Index) Replacements(source string) []Replacement { return x.replacements[source] }

// NotedBy is the source that names a replacement; empty if no source does.
func (x *Index) NotedBy(replacement string) string { return x.noted[replacement] }

// ReplacementOf a source; empty if there is none, or more than one.
func (x *Index) ReplacementOf(source *appsv1.ControllerRevision) string {
	return x.ReplacementFor(source.Name, source.UID, NotedReplacement(source))
}

// ReplacementFor is ReplacementOf a source of which only this is known.
func (x *Index) ReplacementFor(name string, uid types.UID, noted string) string {
	if noted != "" {
		return noted
	}
	var found string
	for _, r := range x.Replacements(name) {
		if r.From != uid {
			continue
		}
		if found != "" {
			return ""
		}
		found = r.Name
	}
	return found
}
