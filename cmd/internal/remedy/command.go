package remedy

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// maxCommands bounds the choice between owners.
const maxCommands = 3

func commands(i revision.Item, flags string) []string {
	target := fmt.Sprintf("controllerrevision %s -n %s%s", i.Name, i.Namespace, flags)
	var all []string
	for _, owner := range i.Fix.Owners[:min(len(i.Fix.Owners), maxCommands)] {
		// A strategic merge patch, kubectl's default, would write data in another order.
		all = append(all, fmt.Sprintf("kubectl patch %s --type=merge -p '%s'", target, ownersPatch(owner)))
	}
	if labels := i.Fix.Labels; len(labels) > 0 {
		all = append(all, fmt.Sprintf("kubectl label %s %s", target, strings.Join(withPlaceholders(labels), " ")))
	}
	if i.Reason == revision.ReasonUnknownVersion {
		all = append(all, repoint(i.References, flags)...)
	}
	if i.Reason == revision.ReasonRollbackPending {
		all = append(all, fmt.Sprintf("godwit revision rollback %s -n %s%s", i.Name, i.Namespace, flags))
	}
	return all
}

func ownersPatch(owner metav1.OwnerReference) string {
	patch := map[string]any{"metadata": map[string]any{"ownerReferences": []metav1.OwnerReference{owner}}}
	text, err := json.Marshal(patch)
	if err != nil {
		return "" // text and booleans are always JSON
	}
	return string(text)
}

// withPlaceholders ends each label in what stands for its value: only a user knows it.
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
