package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/internal/quote"
)

// canAsk: somebody reads the question and can answer it.
func (a *app) canAsk() bool { return isTerminal(a.streams.In) && isTerminal(a.streams.ErrOut) }

func (a *app) refuseUnasked(command string) error {
	return &exitError{Refused, fmt.Errorf("%s changes the cluster and there is no terminal to ask on: nothing was written; "+
		"if that is what you want: %s", command, a.commandLine("--yes"))}
}

// ask shows what would be done and returns an error unless the answer is yes.
func (a *app) ask(ctx context.Context, s *session, findings []finding) error {
	if anyReady(findings) {
		var plans []report.CRDPlan
		for _, f := range findings {
			if f.problem == nil && f.plan.State != crdmigrator.Clean {
				plans = append(plans, f.item())
			}
		}
		if err := report.WritePlans(a.console, a.style(a.streams.ErrOut, format{}), plans, true); err != nil {
			return err
		}
		a.console.printf("\nMigrate them on %s? [y/N] ", s.where())
	} else {
		a.console.printf("Every object is at its storage version. Look for managedFields that name versions which are\n"+
			"not served, and clean them, on %s? [y/N] ", s.where())
	}
	return a.confirm(ctx)
}

// confirm is an error unless the answer is yes.
func (a *app) confirm(ctx context.Context) error {
	answer, err := a.answer(ctx)
	if err != nil {
		a.console.printf("\n")
		return err
	}
	if answer != "y" && answer != "yes" {
		return &exitError{Refused, fmt.Errorf("not confirmed, nothing was written")}
	}
	return nil
}

// sayWarnings tells whoever is not asked what the plan would have told.
func (a *app) sayWarnings(findings []finding) {
	for _, f := range findings {
		for _, w := range f.plan.Warnings {
			a.console.printf("warning: %s: %s; %s\n", w.Reason, w.Message, w.Remedy)
		}
	}
}

// answer reads a line, or returns when the context ends.
func (a *app) answer(ctx context.Context) (string, error) {
	lines := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.streams.In).ReadString('\n') // the end of the input is a no
		lines <- line
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case line := <-lines:
		return strings.ToLower(strings.TrimSpace(line)), nil
	}
}

// mayWrite: a run would write something, or may find that it has to.
func mayWrite(findings []finding) bool {
	return anyReady(findings) || slices.ContainsFunc(findings, func(f finding) bool {
		return f.problem == nil && f.plan.State == crdmigrator.Clean && f.plan.Objects != nil && *f.plan.Objects > 0
	})
}

// anyReady: a run would migrate something.
func anyReady(findings []finding) bool {
	for _, f := range findings {
		if f.problem == nil && f.plan.State != crdmigrator.Clean && len(f.plan.Refusals()) == 0 {
			return true
		}
	}
	return false
}

// refuseUnreadable refuses a run of named definitions when one of them can't be
// read: a typo must not leave half of a list migrated.
func refuseUnreadable(sel selection, findings []finding) ([]report.CRDRunReport, bool) {
	unreadable := ""
	for _, f := range findings {
		if f.problem != nil {
			unreadable = f.name
		}
	}
	if unreadable == "" || len(sel.names) == 0 {
		return nil, false
	}
	items := make([]report.CRDRunReport, len(findings))
	for i, f := range findings {
		items[i] = report.CRDRunReport{Name: f.name, StorageVersion: f.plan.StorageVersion, Requests: f.requests.Load()}
		if f.problem != nil {
			items[i].Result, items[i].Failures = report.Failed, whole(f.name, f.problem.Error())
			continue
		}
		items[i].Result, items[i].Failures = report.Blocked, whole(f.name, "not begun, because "+unreadable+" can't be read")
	}
	return items, true
}

// sayEnding tells whoever pressed Ctrl-C that it was noticed, since finishing
// takes its time.
func (a *app) sayEnding(ctx context.Context) (said func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		switch ended(ctx) {
		case TimedOut:
			a.console.printf("--timeout is over: finishing the writes under way\n")
		case Interrupted:
			a.console.printf("interrupted: finishing the writes under way; once more ends at once\n")
		}
	})
	return func() {
		if !stop() {
			<-done // or what follows would overtake it
		}
	}
}

// commandLine is what was typed, with more flags, ready to be pasted. A token
// is left out: what is printed ends up in logs.
func (a *app) commandLine(more ...string) string {
	words := []string{a.program}
	args := append(append([]string(nil), a.args...), more...)
	for i, arg := range args {
		switch {
		case strings.HasPrefix(arg, "--token="):
			arg = "--token=..."
		case i > 0 && args[i-1] == "--token":
			arg = "..."
		default:
			arg = quote.Shell(arg)
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

// clusterFlags are those of this command that lead another one, of ours or kubectl, to the
// same cluster as the same user, each after a space. A token is not repeated.
func (a *app) clusterFlags() string {
	f, text := a.cluster, ""
	add := func(name string, value *string) {
		if value != nil && *value != "" {
			text += " --" + name + "=" + quote.Shell(*value)
		}
	}
	add("kubeconfig", f.KubeConfig)
	add("context", f.Context)
	add("cluster", f.ClusterName)
	add("user", f.AuthInfoName)
	add("server", f.APIServer)
	add("as", f.Impersonate)
	add("as-uid", f.ImpersonateUID)
	if f.ImpersonateGroup != nil {
		for _, group := range *f.ImpersonateGroup {
			add("as-group", &group)
		}
	}
	return text
}

// hint is a command to paste.
func (a *app) hint(words string) string { return a.program + " " + words + a.clusterFlags() }
