package markers

import (
	"fmt"
	"strings"

	"github.com/godwit-dev/godwit"
)

// rules are valid Options.
type rules struct {
	label         label
	exclude       string
	allowNoReason bool
}

func (o Options) rules() (rules, error) {
	r := rules{exclude: strings.TrimPrefix(o.Exclude, "+"), allowNoReason: o.AllowNoReason}
	if o.Label == "" {
		o.Label = DefaultLabel
	}
	if o.Exclude == "" {
		r.exclude = DefaultExclude
	}
	var ok bool
	r.label.key, r.label.value, ok = strings.Cut(o.Label, "=")
	switch {
	case !ok || r.label.key == "" || strings.ContainsAny(o.Label, blanks+`,;{}"`+"`"):
		return rules{}, fmt.Errorf("check markers: the label %q is not written key=value", o.Label)
	case r.exclude == "" || strings.ContainsAny(r.exclude, blanks+"=+"):
		return rules{}, fmt.Errorf("check markers: the exclude marker %q is not a name such as %s", o.Exclude, DefaultExclude)
	}
	return r, nil
}

// toMigrate and toExclude are the markers that a message tells the user to write.
func (r rules) toMigrate() string {
	return fmt.Sprintf("// +%s:labels=%s=%s", metadataMarker, r.label.key, r.label.value)
}

func (r rules) toExclude() string {
	if r.allowNoReason {
		return "// +" + r.exclude
	}
	return "// +" + r.exclude + "=<reason>"
}

// statement is what the markers of a type say about migration.
type statement struct {
	migrate, otherwise, exclude, noReason, unreadable []stated
}

// stated is what one marker says: the label's value, an error, or nothing beyond its name.
type stated struct {
	line int
	text string
}

func (r rules) read(markers []marker) statement {
	var s statement
	for _, m := range markers {
		if reason, ok := m.exclusion(r.exclude); ok {
			s.exclude = append(s.exclude, stated{line: m.line})
			if reason == "" && !r.allowNoReason {
				s.noReason = append(s.noReason, stated{line: m.line})
			}
		}
		labels, _, err := m.labels()
		for _, l := range labels {
			switch {
			case l.key != r.label.key:
			case l.value == r.label.value:
				s.migrate = append(s.migrate, stated{line: m.line})
			default:
				s.otherwise = append(s.otherwise, stated{m.line, l.value})
			}
		}
		if err != nil {
			s.unreadable = append(s.unreadable, stated{m.line, err.Error()})
		}
	}
	return s
}

// first is the first marker that says anything, or nil.
func (s statement) first() *stated {
	for _, group := range [][]stated{s.migrate, s.otherwise, s.exclude} {
		if len(group) > 0 {
			return &group[0]
		}
	}
	return nil
}

// kind identifies a CRD across its versions.
type kind struct{ group, name string }

// check returns the findings about the types.
func (r rules) check(all []subject) []Finding {
	stored := map[kind]subject{}
	for _, s := range all {
		if s.group != "" && s.root() && s.storage() {
			stored[kind{s.group, s.name}] = s
		}
	}
	var findings []Finding
	for _, s := range all {
		if !s.root() {
			findings = append(findings, r.checkOther(s)...)
			continue
		}
		storage, ok := stored[kind{s.group, s.name}]
		if !ok || s.storage() || storage.folder == s.folder {
			findings = append(findings, r.checkRoot(s)...)
			continue
		}
		findings = append(findings, r.checkVersion(s, storage)...)
	}
	return findings
}

// checkRoot checks that the type has exactly one of the two markers.
func (r rules) checkRoot(s subject) []Finding {
	said := r.read(s.markers)
	findings := r.checkForm(s, said)
	if said.first() != nil || len(said.unreadable) > 0 {
		return findings
	}
	if lost := r.read(s.lost).first(); lost != nil {
		return append(findings, s.finding(lost.line, Lost,
			"controller-gen does not see this marker, since another comment stands between it and the type: move it into the comment right above"))
	}
	return append(findings, s.finding(s.line, Missing,
		"no marker says whether its objects are migrated: add %s, or %s", r.toMigrate(), r.toExclude()))
}

// checkVersion checks a version that is not the storage version: it needs no marker, but must not
// contradict it.
func (r rules) checkVersion(s, storage subject) []Finding {
	said, decided := r.read(s.markers), r.read(storage.markers)
	findings := r.checkForm(s, said)
	at := fmt.Sprintf("%s:%d", storage.file, storage.line)
	switch {
	case len(said.migrate) > 0 && len(said.exclude) == 0 && len(decided.exclude) > 0:
		findings = append(findings, s.finding(said.migrate[0].line, Contradiction,
			"this gives the CRD the label, although the storage version at %s is excluded: remove one of the two", at))
	case len(said.exclude) > 0 && len(said.migrate) == 0 && len(decided.migrate) > 0:
		findings = append(findings, s.finding(said.exclude[0].line, Contradiction,
			"this does not exclude the CRD, which gets the label from the storage version at %s: remove one of the two", at))
	}
	return findings
}

// checkForm finds markers that are wrong on a root type of any version.
func (r rules) checkForm(s subject, said statement) []Finding {
	var findings []Finding
	add := func(line int, reason *godwit.Reason, format string, args ...any) {
		findings = append(findings, s.finding(line, reason, format, args...))
	}
	for _, u := range said.unreadable {
		add(u.line, Unreadable, "controller-gen fails on this marker or misreads it: %s; write %s", u.text, r.toMigrate())
	}
	for _, o := range said.otherwise {
		add(o.line, WrongValue, "the label is %q, so its objects are not migrated: write %s, or, where that is meant, %s", o.text, r.toMigrate(), r.toExclude())
	}
	if len(said.migrate) > 0 && len(said.exclude) > 0 {
		add(said.exclude[0].line, Contradiction, "it is excluded here and migrated by the marker on line %d: remove one of the two", said.migrate[0].line)
	}
	for _, n := range said.noReason {
		add(n.line, NoReason, "it is excluded without a reason: write %s", r.toExclude())
	}
	for _, same := range [][]stated{said.migrate, said.exclude} {
		for i := 1; i < len(same); i++ {
			add(same[i].line, Duplicate, "this repeats the marker on line %d: remove one of the two", same[0].line)
		}
	}
	return findings
}

// checkOther finds a marker on a type without a CRD, where it has no effect.
func (r rules) checkOther(s subject) []Finding {
	first := r.read(s.markers).first()
	if first == nil {
		return nil
	}
	return []Finding{s.finding(first.line, NotRoot,
		"this marker does nothing, since the type is not a root of an API (a struct marked +%s=true, not a list): move it to the one meant, or remove it", rootMarker)}
}

func (s subject) finding(line int, reason *godwit.Reason, format string, args ...any) Finding {
	return Finding{File: s.file, Line: line, Type: s.name, Finding: godwit.Finding{Reason: reason, Message: fmt.Sprintf(format, args...), Fix: reason.Fix}}
}
