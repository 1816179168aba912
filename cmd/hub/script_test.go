package hub

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// TestScripts plays the scripts in testdata/scripts. Run with -rewrite to write their outputs.
//
//	new c1 c2               a migration of two clusters, which starts
//	pending c1 c2           one that has not started; placement=NAME instead of clusters
//	answer PARTY            the party finishes what it was told, for all clusters
//	answer PARTY done=(…)   … for some; also error=…, failed=(…), clusters=(…), reason=…
//	progress PARTY done=(…) a report before the final one; gone=(…) for clusters that do not exist any more, denied=(…) for
//	                        denied CertificateSigningRequests, issued=(…) for clusters with a certificate
//	late PARTY              the party's answer to the command before the present one
//	tick 100s               time passes
//	until Registering       all parties answer until the phase is reached
//	start, rollback, delete, lose, find, wait for=…, forget c1 c2
//	conditions              shows what the status says
func TestScripts(t *testing.T) {
	datadriven.Walk(t, filepath.Join("testdata", "scripts"), func(t *testing.T, path string) {
		var r *run
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if r == nil {
				r = newRun(t)
			}
			r.t = t
			for _, line := range append([]string{""}, strings.Split(d.Input, "\n")...) {
				if line != "" {
					t.Fatalf("%s: a command has no input, and this one has %q", d.Pos, line)
				}
			}
			if d.Cmd == "conditions" {
				return r.conditions()
			}
			r.command(d)
			return r.describe()
		})
	})
}

func (r *run) command(d *datadriven.TestData) {
	r.t.Helper()
	switch d.Cmd {
	case "new", "pending":
		var names []string
		for _, arg := range d.CmdArgs {
			if arg.Key != "placement" {
				names = append(names, arg.Key)
			}
		}
		*r = *newRun(r.t, names...)
		if d.HasArg("placement") {
			d.ScanArgs(r.t, "placement", &r.state.Placement)
		}
		if d.Cmd == "new" {
			r.step(Start{At: r.now})
		}
	case "start":
		r.step(Start{At: r.now})
	case "forget":
		var names []string
		for _, arg := range d.CmdArgs {
			names = append(names, arg.Key)
		}
		r.step(Forget{At: r.now, Clusters: names})
	case "rollback":
		r.step(Rollback{At: r.now})
	case "lose":
		r.step(Lose{At: r.now})
	case "find":
		r.step(Find{At: r.now})
	case "delete":
		r.step(Delete{At: r.now})
	case "wait":
		e := Wait{At: r.now}
		d.ScanArgs(r.t, "for", &e.For)
		r.step(e)
	case "tick":
		after, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			r.t.Fatal(err)
		}
		r.now = r.now.Add(after)
		r.step(Tick{At: r.now})
	case "until":
		r.until(api.Phase(d.CmdArgs[0].Key))
	case "refuse":
		r.refused = map[Party]string{Party(d.CmdArgs[0].Key): strings.Join(d.CmdArgs[1].Vals, " ")}
	case "take":
		r.refused = nil
	case "answer", "progress", "late":
		r.scriptedReport(d)
	default:
		r.t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	}
}

func (r *run) scriptedReport(d *datadriven.TestData) {
	p := Party(d.CmdArgs[0].Key)
	if d.Cmd == "answer" && len(d.CmdArgs) == 1 {
		r.answer(p)
		return
	}
	r.report(p, func(e *Report) {
		e.Finished = d.Cmd != "progress"
		if d.Cmd == "late" {
			e.Attempt--
		}
		for _, arg := range d.CmdArgs[1:] {
			switch arg.Key {
			case "error":
				e.Error = Failure{Message: strings.Join(arg.Vals, " ")}
			case "reason":
				e.Reason = arg.Vals[0]
			case "done":
				e.Done = append(e.Done, arg.Vals...)
			case "gone":
				e.Done, e.Gone = append(e.Done, arg.Vals...), map[string]string{}
				for _, name := range arg.Vals {
					e.Gone[name] = "there is no " + name
				}
			case "denied":
				e.DeniedRequests = append(e.DeniedRequests, strings.Join(arg.Vals, " "))
			case "issued":
				e.Certificates = map[string]time.Time{}
				for _, name := range arg.Vals {
					e.Certificates[name] = time.Date(2027, 11, 29, 20, 30, 0, 0, time.UTC)
				}
			case "clusters":
				// The parser reads () as one empty value.
				e.Clusters = slices.DeleteFunc(arg.Vals, func(name string) bool { return name == "" })
			case "failed":
				e.ClusterErrors = map[string]Failure{}
				for _, name := range arg.Vals {
					e.ClusterErrors[name] = Failure{Message: fmt.Sprintf("no luck with %s", name)}
				}
			default:
				r.t.Fatalf("%s: unknown argument %s", d.Pos, arg.Key)
			}
		}
	})
}
