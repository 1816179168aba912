package frame

import (
	"cmp"
	"slices"
	"strings"
)

// maxSuggestions is the number of suggestions that fit in one line.
const maxSuggestions = 3

// Suggest returns known names for an unknown one: names whose plural, singular or kind equals it, or else names with a
// similar spelling.
func Suggest(name string, known []string) []string {
	name = strings.ToLower(name)
	type candidate struct {
		name     string
		distance int
	}
	var candidates []candidate
	for _, k := range known {
		plural, group, _ := strings.Cut(k, ".")
		given, givenGroup, hasGroup := strings.Cut(name, ".")
		named := slices.Contains([]string{plural, strings.TrimSuffix(plural, "s"), strings.TrimSuffix(plural, "es"), singularY(plural)}, given)
		distance := min(edits(name, k), edits(name, plural))
		switch {
		case named && (!hasGroup || group == givenGroup):
			distance = 0
		case named:
			distance = min(distance, wrongGroup)
		case distance > tolerance(name):
			continue
		}
		candidates = append(candidates, candidate{k, distance})
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(a.distance-b.distance, strings.Compare(a.name, b.name))
	})
	var names []string
	for _, c := range candidates {
		if c.distance > candidates[0].distance || len(names) == maxSuggestions {
			break
		}
		names = append(names, c.name)
	}
	return names
}

// wrongGroup is the distance of the same resource in another group: more than one typing
// error in the name.
const wrongGroup = 3

// singularY returns policy for policies.
func singularY(plural string) string {
	if stem, ok := strings.CutSuffix(plural, "ies"); ok {
		return stem + "y"
	}
	return plural
}

// tolerance allows one typing error in short words and three in long words.
func tolerance(name string) int { return min(3, 1+len(name)/8) }

// edits returns the Levenshtein distance of two short ASCII strings.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitution := diagonal
			if a[i] != b[j] {
				substitution++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitution, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Similar returns the words with a similar spelling, ignoring letter case.
func Similar(word string, known []string) []string {
	nearest := tolerance(word) + 1
	var near []string
	for _, k := range known {
		switch distance := edits(strings.ToLower(word), strings.ToLower(k)); {
		case distance < nearest:
			nearest, near = distance, []string{k}
		case distance == nearest && nearest <= tolerance(word) && len(near) < maxSuggestions:
			near = append(near, k)
		}
	}
	return near
}

// DidYouMean returns a question with similar names, or the other remedy if none is similar.
func DidYouMean(similar []string, otherwise string) string {
	if len(similar) == 0 {
		return otherwise
	}
	return "did you mean " + strings.Join(similar, " or ") + "?"
}
