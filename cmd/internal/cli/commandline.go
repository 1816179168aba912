package cli

import (
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/remedy"
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
	f := a.Cluster
	text := flag("kubeconfig", f.KubeConfig) + a.locationFlags() + flag("user", f.AuthInfoName) +
		flag("as", f.Impersonate) + flag("as-uid", f.ImpersonateUID)
	if f.ImpersonateGroup != nil {
		for _, group := range *f.ImpersonateGroup {
			text += flag("as-group", &group)
		}
	}
	return text
}

// locationFlags choose the cluster.
func (a *App) locationFlags() string {
	f := a.Cluster
	return flag("context", f.Context) + flag("cluster", f.ClusterName) + flag("server", f.APIServer)
}

// administratorFlags lead an administrator to the cluster of this command. The administrator does
// not act as the user who lacks a permission: a kubeconfig has that user's credentials, unless the
// command impersonates the user.
func (a *App) administratorFlags() string {
	if flag("as", a.Cluster.Impersonate) == "" {
		return a.locationFlags()
	}
	return flag("kubeconfig", a.Cluster.KubeConfig) + a.locationFlags()
}

// flag is a flag with its value after a space; empty where it was not given.
func flag(name string, value *string) string {
	if value == nil || *value == "" {
		return ""
	}
	return " --" + name + "=" + quote.Shell(*value)
}

// Remedies words fixes as commands that the user can paste.
func (a *App) Remedies() remedy.Writer {
	return remedy.Writer{Program: a.Program, Cluster: a.ClusterFlags()}
}

// Hint is a command to paste.
func (a *App) Hint(words string) string { return a.Program + " " + words + a.ClusterFlags() }
