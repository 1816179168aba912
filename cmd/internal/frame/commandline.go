package frame

import (
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/internal/quote"
)

// CommandLine returns the command line of the user with more flags, quoted for a shell. It omits tokens, because output
// ends up in logs.
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

// ClusterFlags returns the flags with which another command of godwit or kubectl uses the same cluster as the same
// user. Each flag has a space before it. It omits tokens.
func (a *App) ClusterFlags() string {
	f := a.Cluster
	var text strings.Builder
	text.WriteString(flag("kubeconfig", f.KubeConfig) + a.locationFlags() + flag("user", f.AuthInfoName) +
		flag("as", f.Impersonate) + flag("as-uid", f.ImpersonateUID))
	if f.ImpersonateGroup != nil {
		for _, group := range *f.ImpersonateGroup {
			text.WriteString(flag("as-group", &group))
		}
	}
	return text.String()
}

// locationFlags returns the flags that choose the cluster.
func (a *App) locationFlags() string {
	f := a.Cluster
	return flag("context", f.Context) + flag("cluster", f.ClusterName) + flag("server", f.APIServer)
}

// administratorFlags returns the flags with which an administrator uses the same cluster. The
// administrator does not act as the user who lacks a permission: a kubeconfig has the credentials
// of that user, unless the command impersonates the user.
func (a *App) administratorFlags() string {
	if flag("as", a.Cluster.Impersonate) == "" {
		return a.locationFlags()
	}
	return flag("kubeconfig", a.Cluster.KubeConfig) + a.locationFlags()
}

// flag returns a flag with a space before it, and nothing for a flag without a value.
func flag(name string, value *string) string {
	if value == nil || *value == "" {
		return ""
	}
	return " --" + name + "=" + quote.Shell(*value)
}

// Remedies returns the writer of fixes as commands that the user can paste.
func (a *App) Remedies() remedy.Writer {
	return remedy.Writer{
		Program: a.Program, Cluster: a.ClusterFlags(),
		Administrator: flag("kubeconfig", a.Cluster.KubeConfig) + a.locationFlags(),
	}
}

// Hint returns a command that the user can paste.
func (a *App) Hint(words string) string { return a.Program + " " + words + a.ClusterFlags() }
