package fieldmigration_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/fieldmigration"
)

type key struct{ Group, Stage, Member string }

var codec = externalname.Compound(
	externalname.Field("group", func(k *key) *string { return &k.Group }, externalname.IsGUID()),
	externalname.Field("stage", func(k *key) *string { return &k.Stage }, externalname.Enum("dev", "prod"), externalname.Optional()),
	externalname.Field("member", func(k *key) *string { return &k.Member }, externalname.FoldCase(), externalname.Mutable()),
)

var keyFields = []fieldmigration.KeyField{
	{Segment: "group", Field: "group", Optional: true}, {Segment: "stage", Field: "scope.stage"}, {Segment: "member", Field: "member"},
}

func TestConstraints(t *testing.T) {
	all, err := fieldmigration.Constraints(codec.Describe(), keyFields...)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, c := range all {
		got = append(got, c.Field+": "+c.Rule.Rule)
	}
	want := []string{
		": !(has(oldSelf.group)) || has(self.group) && self.group.lowerAscii() == oldSelf.group.lowerAscii()",
		"group: self.matches('^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",
		": self.scope.stage == oldSelf.scope.stage",
		`scope.stage: self == '' || self in ["dev", "prod"]`,
		"member: self.trim() != '' && !(self in ['.', '..'])",
		": (has(self.group) ? bytes(self.group).size() : 0) + bytes(self.scope.stage).size() + bytes(self.member).size() + 2 <= 512",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	marker := `// +kubebuilder:validation:XValidation:rule="self.scope.stage == oldSelf.scope.stage",message="scope.stage is part of the external name and can't change; create another object"`
	if got := all[2].Marker(); got != marker {
		t.Errorf("marker\n%s, want\n%s", got, marker)
	}
	hex, err := fieldmigration.Constraints(externalname.GUID(externalname.Hex32()).Describe(), fieldmigration.KeyField{Segment: "guid", Field: "id"})
	if err != nil || hex[1].Rule.Rule != "self.matches('^[0-9a-fA-F]{32}$')" {
		t.Errorf("a GUID without hyphens: %v, %v", hex, err)
	}
}

func TestConstraintsNeedASegmentAndAName(t *testing.T) {
	for name, field := range map[string]fieldmigration.KeyField{
		"no such segment": {Segment: "team", Field: "team"},
		"no identifier":   {Segment: "member", Field: "member-name"},
	} {
		if all, err := fieldmigration.Constraints(codec.Describe(), field); err == nil {
			t.Errorf("%s: %v, want an error", name, all)
		}
	}
}

func TestKeyFields(t *testing.T) {
	got := fieldmigration.KeyFields("", codec.Describe(), keyFields...)
	want := "spec.forProvider.group=Immutable,spec.forProvider.scope.stage=Immutable,spec.forProvider.member=Mutable"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := fieldmigration.KeyFields("", externalname.GUID().Describe()); got != fieldmigration.NoKeyFields {
		t.Errorf("a key that the external system makes: %s, want %s", got, fieldmigration.NoKeyFields)
	}
}
