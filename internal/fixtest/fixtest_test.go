package fixtest_test

import (
	"testing"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/fixtest"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	reason := &godwit.Reason{Name: "Reason", Fix: godwit.Do("serve VERSION", godwit.Edit{}).Then("run again", godwit.RunMigration{}).Or(godwit.Do("wait"))}
	for name, c := range map[string]struct {
		fix   godwit.Fix
		wrong bool
	}{
		"none":             {},
		"both":             {fix: godwit.Do("serve v1", godwit.Edit{}).Then("run again", godwit.RunMigration{}).Or(godwit.Do("wait"))},
		"a shorter way":    {fix: godwit.Do("serve v1", godwit.Edit{})},
		"without commands": {fix: godwit.Do("serve v1").Then("run again")},
		"another order":    {fix: godwit.Do("wait").Or(godwit.Do("serve v1", godwit.Edit{})), wrong: true},
		"another command":  {fix: godwit.Do("serve v1", godwit.Delete{}), wrong: true},
		"another text":     {fix: godwit.Do("serve v1, then wait", godwit.Edit{}).Then("run"), wrong: true},
		"steps turned":     {fix: godwit.Do("run again").Then("serve v1"), wrong: true},
		"other steps":      {fix: godwit.Do("look").Then("check"), wrong: true},
		"after another":    {fix: godwit.Do("wait").After("first do what Forbidden asks for")},
	} {
		if err := fixtest.Check(godwit.Finding{Reason: reason, Fix: c.fix}); (err != nil) != c.wrong {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The fix of another finding, which has several ways.
	reason = &godwit.Reason{Name: "Reason", Fix: godwit.Do("do what the reason in the message asks for").Then("check")}
	if err := fixtest.Check(godwit.Finding{Reason: reason, Fix: godwit.Do("look").Or(godwit.Do("wait")).Then("check")}); err != nil {
		t.Error(err)
	}
}
