package rescue

import (
	"fmt"
	"strings"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/crdmigrator/rescue"
)

// printEvery is the time between two lines of progress, so that a large rescue does not fill the terminal.
const printEvery = 10 * time.Second

// progress prints the progress of a rescue on stderr.
type progress struct {
	name    string
	console *frame.Console
	last    string    // the last message
	printed time.Time // when the last count was printed
}

func (p *progress) show(now rescue.Progress) {
	if now.Message != "" {
		if now.Message != p.last {
			p.console.Printf("%s: %s\n", p.name, now.Message)
		}
		p.last = now.Message
		return
	}
	if time.Since(p.printed) < printEvery {
		return
	}
	p.printed = time.Now()
	p.console.Printf("%s: %s rewritten\n", p.name, render.Count(now.Objects.Storage.Counts.Total(), "object", "objects"))
}

// steps describes the steps of a planned rescue.
func steps(p rescue.Plan) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", p.Name)
	if p.Cause != "" {
		fmt.Fprintf(&text, "  the API server does not list its objects: %s\n", p.Cause)
	}
	if p.Resumes {
		text.WriteString("  resuming an earlier rescue\n")
	}
	if len(p.Reverted) > 0 {
		fmt.Fprintf(&text, "  ! another client has removed %s; the spec belongs to %s: pause that client\n", strings.Join(p.Reverted, " and "), strings.Join(p.Owners, ", "))
	}
	n := 0
	step := func(format string, args ...any) {
		n++
		fmt.Fprintf(&text, "  %d. %s\n", n, fmt.Sprintf(format, args...))
	}
	if len(p.Missing) > 0 {
		schema := "with the schema of the manifest"
		if len(p.Permissive) > 0 {
			schema = "which keeps every field"
		}
		step("add version %s, not served, %s", strings.Join(p.Missing, ", "), schema)
	}
	if p.WithoutWebhook {
		unserved := ""
		if len(p.Unserved) > 0 {
			unserved = fmt.Sprintf(", and stop serving %s meanwhile", strings.Join(p.Unserved, ", "))
		}
		step("if the conversion webhook does not convert, convert without it%s: this changes apiVersion alone, and keeps in each field what the old version means by it", unserved)
	}
	step("wait until every API server uses that spec, and refuse if a field would be lost")
	step("rewrite every object at %s, and set status.storedVersions to %[1]s", p.StorageVersion)
	step("restore the spec and its field managers, and list every object")
	return text.String()
}
