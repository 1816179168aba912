// Package content compares what users have in objects before and after an upgrade: the UID, and each value by its path. It reads no
// cluster, and decides nothing about versions: what is read at two versions is compared as it was read.
package content

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Snapshot is what a user has: the values of objects by their paths, such as spec.dnsNames[0], by kind, namespace and name.
type Snapshot map[string]map[string]string

// Add adds an object with its UID and what is in it. Empty objects are left out, since a conversion webhook adds them.
func (s Snapshot) Add(kind string, o metav1.Object, content map[string]any) {
	values := map[string]string{"uid": string(o.GetUID())}
	for name, value := range content {
		add(values, name, value)
	}
	s[kind+" "+o.GetNamespace()+"/"+o.GetName()] = values
}

func add(values map[string]string, path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, of := range value {
			add(values, path+"."+name, of)
		}
		if len(value) == 0 && strings.HasSuffix(path, "]") {
			values[path] = "{}" // an item of a list
		}
	case []any:
		for i, of := range value {
			add(values, fmt.Sprintf("%s[%d]", path, i), of)
		}
		if len(value) == 0 {
			values[path] = "[]"
		}
	default:
		text, err := json.Marshal(value)
		if err != nil {
			panic(err) // what was JSON
		}
		values[path] = string(text)
	}
}

// Comparison is what has become of the objects of a snapshot.
type Comparison struct {
	// Objects were compared.
	Objects int
	// Lost of them are not what they were: they are gone, or a value has changed, is gone without consent, or was not there.
	Lost int
	// GivenUp has how many values are gone of each path that the user has given up.
	GivenUp map[string]int
	// Differences says how objects differ, but for values that were given up.
	Differences []string
}

// Compare compares the objects of a snapshot with a later one, which may have more. A value at a path that the user has given up may be
// gone, and nothing else may have become of it.
func Compare(before, now Snapshot, givenUp ...string) Comparison {
	c := Comparison{Objects: len(before), GivenUp: map[string]int{}}
	for _, object := range slices.Sorted(maps.Keys(before)) {
		differences := c.compare(before[object], now[object], givenUp)
		if _, there := now[object]; !there {
			differences = []string{"it is gone"}
		}
		if len(differences) > 0 {
			c.Lost++
			c.Differences = append(c.Differences, object+": "+strings.Join(differences, ", "))
		}
	}
	return c
}

// compare returns how the values of an object differ, and counts those that are gone by consent.
func (c *Comparison) compare(before, now map[string]string, givenUp []string) []string {
	var differences []string
	all := maps.Clone(before)
	maps.Copy(all, now)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		was, had := before[path]
		is, has := now[path]
		switch {
		case had && has && was == is:
		case had && !has && slices.Contains(givenUp, path):
			c.GivenUp[path]++
		case !has:
			differences = append(differences, fmt.Sprintf("%s was %s and is gone", path, was))
		case !had:
			differences = append(differences, fmt.Sprintf("%s is %s and was not there", path, is))
		default:
			differences = append(differences, fmt.Sprintf("%s was %s and is %s", path, was, is))
		}
	}
	return differences
}
