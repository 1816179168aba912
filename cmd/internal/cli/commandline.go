package cli

import (
	"strings"

	"github.com/godwit-dev/godwit/internal/quote"
)

// CommandLine is what was typed, with more flags, ready to be pasted. A token
// is left out: what is printed ends up in logs.
func (a *App) CommandLine(more ...string) string {
	words := []string{a.Program}
	args := append(append([]string(nil), a.Args...), more...)
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

// ClusterFlags are those of this command that lead another one, of ours or kubectl, to the
// same cluster as the same user, each after a space. A token is not repeated.
func (a *App) ClusterFlags() string {
	f, text := a.Cluster, ""
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

// Hint is a command to paste.
func (a *App) Hint(words string) string { return a.Program + " " + words + a.ClusterFlags() }
