package revision

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// VersionCount is how many stashes speak a version, in one form.
type VersionCount struct {
	Version string `json:"version"`
	Form    string `json:"form"`
	Count   int64  `json:"count"`
}

// Survey is at which versions anything is left in a whole cluster.
type Survey struct {
	// Census counts every stash, also those that nobody refers to.
	Census []VersionCount `json:"census"`
	// Droppable are the versions of the family at which nothing is left, but for
	// those that upgrades aim at.
	Droppable []string `json:"droppableVersions"`
	// Held says of the others what holds them, oldest version first.
	Held []HeldVersion `json:"held,omitempty"`
	// Ahead is as [Ahead] says.
	Ahead []string `json:"ahead,omitempty"`
}

// Ahead are the versions that definitions store and that a family does not know: the
// software that it belongs to is newer than this release. Stashes are upgraded to the
// newest version that they can be converted to, if that software still serves it.
func Ahead(d Description, definitions map[schema.GroupResource]Definition) []string {
	found := map[string]bool{}
	for _, one := range definitions {
		if one.Found && !slices.Contains(d.Versions, one.Storage) {
			found[one.Storage] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// HeldVersion is a version that can't be dropped.
type HeldVersion struct {
	Version string `json:"version"`
	// By names the first that hold it.
	By    []string `json:"by"`
	Count int64    `json:"count"`
}

// maxHolders that a held version names.
const maxHolders = 5

// Survey reads all stashes of the cluster, and the definitions' storedVersions. A
// list that the API server refuses is an error: a version that nobody could look
// for is not droppable.
func (u *Upgrader) Survey(ctx context.Context) (Survey, error) { return u.SurveyEach(ctx, nil) }

// SurveyEach is a survey that is a plan of the whole cluster as well: each, if given,
// is called with every item, so that both come of one scan. Its first error ends the
// scan.
func (u *Upgrader) SurveyEach(ctx context.Context, each func(Item) error) (Survey, error) {
	s := newSurveyor(u.family.Describe().Versions)
	for n, err := range u.namespaces(ctx, Scope{}) {
		if err != nil {
			return Survey{}, err
		}
		for _, i := range n.items {
			s.item(i)
			if each == nil {
				continue
			}
			if err := each(i); err != nil {
				return Survey{}, err
			}
		}
	}
	definitions, err := u.Definitions(ctx)
	if err != nil {
		return Survey{}, err
	}
	s.definitions(definitions)
	survey := s.end()
	survey.Ahead = Ahead(u.family.Describe(), definitions)
	return survey, nil
}

// surveyor counts.
type surveyor struct {
	versions []string
	census   map[VersionCount]int64
	held     map[string]*HeldVersion
	targets  map[string]bool // that definitions store
	aims     map[string]bool // that upgrades aim at
}

func newSurveyor(versions []string) *surveyor {
	return &surveyor{versions: versions, census: map[VersionCount]int64{}, held: map[string]*HeldVersion{}, targets: map[string]bool{}, aims: map[string]bool{}}
}

// item counts a stash. One that nobody can read may speak any version.
func (s *surveyor) item(i Item) {
	name := "controllerrevision " + i.Namespace + "/" + i.Name
	if i.Version == "" {
		if i.UID == "" {
			return // nothing is stashed there
		}
		for _, v := range s.versions {
			s.hold(v, name+" (which can't be read)")
		}
		return
	}
	s.census[VersionCount{Version: i.Version, Form: i.Form}]++
	s.aims[i.Target] = true
	s.hold(i.Version, name)
}

// definitions are taken in order: what is said of them stands in a condition, which is
// to change when something else does.
func (s *surveyor) definitions(all map[schema.GroupResource]Definition) {
	byName := func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) }
	for _, r := range slices.SortedFunc(maps.Keys(all), byName) {
		d := all[r]
		if d.Storage != "" {
			s.targets[d.Storage] = true
		}
		for _, v := range d.Stored {
			s.hold(v, fmt.Sprintf("status.storedVersions of customresourcedefinition %s: see godwit crd run", r))
		}
	}
}

func (s *surveyor) hold(version, by string) {
	h := s.held[version]
	if h == nil {
		h = &HeldVersion{Version: version}
		s.held[version] = h
	}
	if h.Count++; len(h.By) < maxHolders {
		h.By = append(h.By, by)
	}
}

func (s *surveyor) end() Survey {
	survey := Survey{Droppable: []string{}}
	for key, n := range s.census {
		key.Count = n
		survey.Census = append(survey.Census, key)
	}
	slices.SortFunc(survey.Census, func(a, b VersionCount) int {
		if by := strings.Compare(a.Version, b.Version); by != 0 {
			return by
		}
		return strings.Compare(a.Form, b.Form)
	})
	for _, v := range s.versions {
		switch h := s.held[v]; {
		case s.targets[v], h == nil && s.aims[v]:
		case h == nil:
			survey.Droppable = append(survey.Droppable, v)
		default:
			survey.Held = append(survey.Held, *h)
			delete(s.held, v)
		}
	}
	for _, v := range slices.Sorted(maps.Keys(s.held)) {
		if !s.targets[v] && !slices.Contains(s.versions, v) {
			survey.Held = append(survey.Held, *s.held[v])
		}
	}
	return survey
}
