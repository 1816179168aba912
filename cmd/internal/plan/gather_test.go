package plan

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
)

// TestGatherKeepsTheOrder: more clusters than are read at a time, of which none answers, are rows in
// the order of the command line.
func TestGatherKeepsTheOrder(t *testing.T) {
	config := clientcmdapi.NewConfig()
	config.Clusters["closed"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	var names []string
	for i := range 3 * clustersAtOnce {
		names = append(names, fmt.Sprintf("cluster%02d", i))
		config.Contexts[names[i]] = &clientcmdapi.Context{Cluster: "closed"}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	a := frame.New([]string{"godwit"}, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &errs, ErrOut: &errs}, clock.RealClock{})
	a.Cluster.KubeConfig = &path
	o := contextFlags{names: append(slices.Clone(names), names[0])}
	var got []string
	for _, r := range gather(t.Context(), o.apps(a), time.Minute, depth{references: true, preflight: true}) {
		got = append(got, r.Cluster)
		if r.State != planreport.Unreachable || len(r.Blockers) != 1 || r.Blockers[0].Remedy == "" {
			t.Errorf("%s: the row is %+v, want Unreachable with a remedy", r.Cluster, r)
		}
	}
	if !slices.Equal(got, names) {
		t.Errorf("the rows are of %v, want %v", got, names)
	}
}

func TestCodeOf(t *testing.T) {
	for state, want := range map[planreport.State]frame.Code{
		planreport.Clean: frame.OK, planreport.Ready: frame.Pending, planreport.InProgress: frame.Pending, planreport.Blocked: frame.Refused,
		planreport.Unknown: frame.Error, planreport.NotChecked: frame.Error, planreport.Unreachable: frame.Error, "Odd": frame.Error,
	} {
		if got := codeOf([]planreport.Row{{State: planreport.Clean}, {State: state}}); got != want {
			t.Errorf("%s: exit code %d, want %d", state, got, want)
		}
	}
}

func TestCompleteContexts(t *testing.T) {
	known := []string{"canary", "east", "eastern"}
	for toComplete, want := range map[string][]string{
		"":           {"canary", "east", "eastern"},
		"ea":         {"east", "eastern"},
		"east,":      {"east,canary", "east,eastern"},
		"east,ea":    {"east,eastern"},
		"east,x":     nil,
		"typo,can":   {"typo,canary"},
		"east,can,e": {"east,can,eastern"},
	} {
		if got := completeContexts(known, toComplete); !slices.Equal(got, want) {
			t.Errorf("%q is completed by %v, want %v", toComplete, got, want)
		}
	}
}
