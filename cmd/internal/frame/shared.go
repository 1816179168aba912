package frame

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/godwit-dev/godwit/walk"
)

// AddTimeout registers --timeout.
func AddTimeout(c *cobra.Command, to *DurationFlag) {
	c.Flags().Var(to, "timeout", "stop after this time, with exit code 124; what was done is kept (default: no limit)")
}

// AddWatch registers --watch.
func AddWatch(c *cobra.Command, to *bool) {
	c.Flags().BoolVarP(to, "watch", "w", false, "show the progress until the end, or until Ctrl-C")
}

// AddAll registers --all. what says what all are.
func AddAll(c *cobra.Command, to *bool, what string) {
	c.Flags().BoolVar(to, "all", false, what)
}

// AddAllNamespaces registers --all-namespaces.
func AddAllNamespaces(c *cobra.Command, to *bool) {
	c.Flags().BoolVarP(to, "all-namespaces", "A", false, "all namespaces")
}

// GivenNamespace returns the value of --namespace, or empty without the flag. It ignores the namespace of the
// kubeconfig's context, which would hide the rest of the cluster from the user. A command with the flag
// --all-namespaces requires one of both.
func (a *App) GivenNamespace(c *cobra.Command) (string, error) {
	if !c.Flags().Changed("namespace") {
		return "", nil
	}
	if *a.Cluster.Namespace == "" {
		return "", Usagef("--namespace is empty; --all-namespaces selects all namespaces")
	}
	if all := c.Flags().Lookup("all-namespaces"); all != nil && all.Value.String() == "true" {
		return "", Usagef("--namespace and --all-namespaces are mutually exclusive")
	}
	return *a.Cluster.Namespace, nil
}

// AddSelector registers --selector. what says what has the labels.
func AddSelector(c *cobra.Command, to *string, what string) {
	c.Flags().StringVarP(to, "selector", "l", "", "only "+what+"; the syntax is kubectl's")
	_ = c.RegisterFlagCompletionFunc("selector", cobra.NoFileCompletions)
}

// ParseSelector reads the value of --selector. The result is nil for an empty one, which selects everything.
func ParseSelector(text string) (labels.Selector, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // as documented
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, Usagef("invalid argument %q for \"-l, --selector\": %v", text, err)
	}
	return selector, nil
}

// AddFilename registers --filename for one file or directory. usage says what is in it.
func AddFilename(c *cobra.Command, to *string, usage string) {
	c.Flags().StringVarP(to, "filename", "f", "", usage)
}

// AddFilenames registers --filename for several files, directories and URLs. what says what is in them.
func AddFilenames(c *cobra.Command, to *[]string, what string) {
	c.Flags().StringSliceVarP(to, "filename", "f", nil, "file, directory or URL with "+what+"; - reads stdin")
}

// AddReferences registers --references.
func AddReferences(c *cobra.Command, to *bool) {
	c.Flags().BoolVar(to, "references", true, "look for ownerReferences, webhooks, policies, roles and APIServices that name a version which is not served")
}

// AddPreflight registers --preflight.
func AddPreflight(c *cobra.Command, to *bool) {
	c.Flags().BoolVar(to, "preflight", true, "send the write of one object of each namespace as a dry run")
}

// LimitFlags limit a run.
type LimitFlags struct {
	maxInFlight CountFlag
	maxWrites   RateFlag
	maxBytes    BytesFlag
}

// MaxBytesFlag is the name of a flag that messages name.
const MaxBytesFlag = "max-bytes-per-5m"

// AddTo registers the flags, with their defaults.
func (l *LimitFlags) AddTo(flags *pflag.FlagSet) {
	l.AddRequestsTo(flags)
	l.maxBytes = walk.DefaultMaxBytesPerFiveMinutes
	flags.Var(&l.maxBytes, MaxBytesFlag, "maximum number of bytes written to etcd in 5 minutes, the time between two compactions; "+
		"none: no limit; etcd may then run full and refuse all writes")
}

// AddRequestsTo registers the flags for a run that writes a few objects, and none for the bytes.
func (l *LimitFlags) AddRequestsTo(flags *pflag.FlagSet) {
	*l = LimitFlags{maxInFlight: walk.DefaultMaxInFlight}
	flags.Var(&l.maxInFlight, "max-in-flight", "maximum number of requests at the same time; a run sends fewer while the API server is overloaded")
	flags.Var(&l.maxWrites, "max-writes-per-second", "maximum number of writes per second (default: no limit)")
}

// Limiter returns the limiter of the flags.
func (l *LimitFlags) Limiter() *walk.Limiter {
	return walk.NewLimiter(walk.Limits{
		MaxInFlight: int(l.maxInFlight), MaxWritesPerSecond: float64(l.maxWrites), MaxBytesPerFiveMinutes: int64(l.maxBytes),
	})
}
