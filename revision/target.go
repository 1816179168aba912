package revision

import (
	"fmt"
	"slices"
	"strings"
)

// aim finds the target version.
func (j judgement) aim(d Definition, s Stash, f facts) judgement {
	if !d.Found {
		return j.as(Blocked, ReasonDefinitionNotFound, fmt.Sprintf("there is no customresourcedefinition %s to read a target version from", s.Definition))
	}
	known := f.family.Describe()
	j.Target = d.target(f.policy.Target, s.Version, known)
	if slices.Contains(d.Served, j.Target) {
		return j
	}
	j.Fix.Targets = d.Reachable(known.Targets)
	helps := "no version that data can be converted to"
	if len(j.Fix.Targets) > 0 {
		helps = strings.Join(j.Fix.Targets, ", ") + ", to which data can be converted"
	}
	return j.as(Blocked, ReasonTargetNotServed, fmt.Sprintf("customresourcedefinition %s does not serve %s; it serves %s", s.Definition, j.Target, helps))
}

// target of a stash at a version: the one that is asked for, or else the storage version.
// Where that is a later one than the family knows, a stash that is not at it goes to the
// newest version that is served and that it can be converted to.
func (d Definition) target(asked, version string, known Description) string {
	if asked != "" {
		return asked
	}
	later := version != d.Storage && !slices.Contains(known.Versions, d.Storage)
	if reachable := d.Reachable(known.Targets); later && len(reachable) > 0 {
		return reachable[len(reachable)-1]
	}
	return d.Storage
}

// Reachable are the versions that are served and that stashes can be converted to.
func (d Definition) Reachable(targets []string) []string {
	var all []string
	for _, v := range targets {
		if slices.Contains(d.Served, v) {
			all = append(all, v)
		}
	}
	return all
}
