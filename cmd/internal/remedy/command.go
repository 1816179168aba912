package remedy

import (
	"fmt"
	"strings"

	"github.com/godwit-dev/godwit/revision"
)

// For is what to do about one revision. A command names the objects, and has the flags
// that lead to their cluster.
func For(i revision.Item, flags string) ReasonDoc {
	r, _ := Lookup(Revisions, i.Reason)
	if more := commands(i, flags); len(more) > 0 {
		text := strings.Join(more, ", or ")
		r.Command += ": " + text
		r.Remedy = strings.TrimSuffix(r.Remedy, ".") + ": " + text
	}
	if n := len(i.Fix.Targets); n > 0 {
		r.Command += ", or give --target-version=" + i.Fix.Targets[n-1]
	}
	return r
}

// ForRollback is what to do about a revision that a rollback left for now. The remedy of an
// upgrade would upgrade it again.
func ForRollback(i revision.Item, flags string) string {
	if i.Reason != revision.ReasonRunning {
		return For(i, flags).Command
	}
	return fmt.Sprintf("stop it and roll back again, or roll back while it runs, and keep the new revision until it stops: godwit revision rollback %s -n %s%s --on-running=Hold",
		i.Name, i.Namespace, flags)
}

// maxCommands bounds the choice between owners.
const maxCommands = 3

func commands(i revision.Item, flags string) []string {
	// kubectl can't patch a revision whose data is not compact JSON: the API server encodes the
	// data anew, and refuses the change.
	fix := fmt.Sprintf("godwit revision fix %s -n %s%s", i.Name, i.Namespace, flags)
	var all []string
	for _, owner := range i.Fix.Owners[:min(len(i.Fix.Owners), maxCommands)] {
		all = append(all, fix+" --owner="+owner.Kind+"/"+owner.Name)
	}
	if labels := i.Fix.Labels; len(labels) > 0 {
		all = append(all, fix+" --label="+strings.Join(withPlaceholders(labels), " --label="))
	}
	if i.Reason == revision.ReasonUnknownVersion {
		all = append(all, repoint(i.References, flags)...)
	}
	if i.Reason == revision.ReasonRollbackPending {
		all = append(all, fmt.Sprintf("godwit revision rollback %s -n %s%s", i.Name, i.Namespace, flags))
	}
	if i.Reason == revision.ReasonUnconfirmed {
		all = append(all, fmt.Sprintf("godwit revision plan -n %s%s", i.Namespace, flags))
	}
	return all
}

// withPlaceholders gives each label a placeholder: only a user knows the value.
func withPlaceholders(labels []string) []string {
	var all []string
	for _, label := range labels {
		what := label[strings.LastIndexAny(label, "-/")+1:]
		all = append(all, label+"="+strings.ToUpper(what))
	}
	return all
}

// repoint is the command for the first referrer that can be written: its spec, which its
// status follows, or else its status.
func repoint(places []revision.ReferenceStatus, flags string) []string {
	for _, status := range []bool{false, true} {
		for _, p := range places {
			if p.State == revision.ReferenceFixed || strings.HasPrefix(p.Path, "/status/") != status {
				continue
			}
			subresource := ""
			if status {
				subresource = " --subresource=status"
			}
			keys := strings.Split(strings.TrimPrefix(p.Path, "/"), "/")
			patch := `"NAME"`
			for k := len(keys) - 1; k >= 0; k-- {
				patch = fmt.Sprintf("{%q:%s}", keys[k], patch)
			}
			return []string{fmt.Sprintf("kubectl patch %s %s -n %s%s%s --type=merge -p '%s'",
				strings.ToLower(p.Kind), p.Name, p.Namespace, flags, subresource, patch)}
		}
	}
	return nil
}
