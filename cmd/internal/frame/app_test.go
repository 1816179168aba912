package frame

import (
	"errors"
	"net"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

func TestWorst(t *testing.T) {
	cases := map[string]struct {
		codes []Code
		want  Code
	}{
		"no target":                            {nil, OK},
		"pending before done":                  {[]Code{OK, Pending, OK}, Pending},
		"blocked before pending":               {[]Code{Pending, Refused}, Refused},
		"partial before blocked":               {[]Code{Partial, Refused, Pending}, Partial},
		"error before partial":                 {[]Code{Partial, Error, Refused}, Error},
		"an end from outside before all":       {[]Code{Error, TimedOut}, TimedOut},
		"the user before the clock, if it can": {[]Code{TimedOut, Interrupted}, Interrupted},
	}
	for name, tc := range cases {
		if got := Worst(tc.codes...); got != tc.want {
			t.Errorf("%s: worst(%v) = %d, want %d", name, tc.codes, got, tc.want)
		}
	}
}

func TestSuggest(t *testing.T) {
	known := []string{
		"gateways.gateway.networking.k8s.io", "httproutes.gateway.networking.k8s.io", "policies.example.com",
		"policies.example.org", "gateways.istio.io", "classes.example.com", "certificates.cert-manager.io",
	}
	cases := map[string]struct {
		name string
		want []string
	}{
		"plural":              {"httproutes", []string{"httproutes.gateway.networking.k8s.io"}},
		"kind":                {"HTTPRoute", []string{"httproutes.gateway.networking.k8s.io"}},
		"plural of two":       {"gateways", []string{"gateways.gateway.networking.k8s.io", "gateways.istio.io"}},
		"singular with y":     {"policy", []string{"policies.example.com", "policies.example.org"}},
		"singular with s":     {"class", []string{"classes.example.com"}},
		"slip in the plural":  {"htproutes", []string{"httproutes.gateway.networking.k8s.io"}},
		"slip in the group":   {"certificates.certmanager.io", []string{"certificates.cert-manager.io"}},
		"singular and group":  {"certificate.cert-manager.io", []string{"certificates.cert-manager.io"}},
		"the group forgotten": {"httproutes.gateway", []string{"httproutes.gateway.networking.k8s.io"}},
		"nothing like it":     {"pods", nil},
		"empty":               {"", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Suggest(tc.name, known)); diff != "" {
				t.Errorf("suggest(%q) (-want +got):\n%s", tc.name, diff)
			}
		})
	}
}

func TestCommandLineCanBePasted(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		more   []string
		want   string
	}{
		"plain":           {"as it was typed", []string{"crd", "run", "a.example.com"}, []string{"--yes"}, "kubectl godwit crd run a.example.com --yes"},
		"for a shell":     {"one word stays one word", []string{"-l", "a in (b)", "it's"}, nil, `kubectl godwit -l 'a in (b)' 'it'\''s'`},
		"token with =":    {"output ends up in logs", []string{"--token=secret"}, nil, "kubectl godwit --token=..."},
		"token in a word": {"output ends up in logs", []string{"--token", "secret", "crd"}, nil, "kubectl godwit --token ... crd"},
	}
	for name, tc := range cases {
		a := &App{Program: "kubectl godwit", Args: tc.args}
		if got := a.CommandLine(tc.more...); got != tc.want {
			t.Errorf("%s: commandLine() = %s, want %s: %s", name, got, tc.want, tc.reason)
		}
	}
}

func TestProgramName(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/local/bin/godwit": "godwit", "bin/kubectl-godwit": "kubectl godwit", "kubectl-godwit.exe": "kubectl godwit",
	} {
		if got := programName(path); got != want {
			t.Errorf("programName(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestUnreachableIsNoAnswer(t *testing.T) {
	cases := map[string]struct {
		err  error
		want bool
	}{
		"connection refused": {&url.Error{Op: "Get", URL: "https://x", Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}, true},
		"forbidden":          {apierrors.NewForbidden(schema.GroupResource{Resource: "customresourcedefinitions"}, "a", errors.New("no")), false},
		"not found":          {decision.ErrNotFound, false},
		"no error":           {nil, false},
	}
	for name, tc := range cases {
		if _, got := Unreachable(tc.err); got != tc.want {
			t.Errorf("%s: unreachable = %v, want %v", name, got, tc.want)
		}
	}
}

// TestAdministratorFlags lead to the cluster of the command, and not to the user who lacks a
// permission.
func TestAdministratorFlags(t *testing.T) {
	for name, test := range map[string]struct {
		kubeconfig, context, as string
		want                    string
		reason                  string
	}{
		"no flag":         {reason: "the administrator's kubeconfig leads to the cluster"},
		"a context":       {context: "the lab", want: " --context='the lab'", reason: "the context names the cluster"},
		"a kubeconfig":    {kubeconfig: "alice.kubeconfig", context: "lab", want: " --context=lab", reason: "the file has the credentials of the user who lacks the permission"},
		"an impersonated": {kubeconfig: "admin.kubeconfig", context: "lab", as: "alice", want: " --kubeconfig=admin.kubeconfig --context=lab", reason: "the credentials are those of another user"},
	} {
		a := &App{Cluster: genericclioptions.NewConfigFlags(true)}
		*a.Cluster.KubeConfig, *a.Cluster.Context, *a.Cluster.Impersonate, *a.Cluster.AuthInfoName = test.kubeconfig, test.context, test.as, "alice"
		if got := a.administratorFlags(); got != test.want {
			t.Errorf("%s: %q, want %q: %s", name, got, test.want, test.reason)
		}
	}
}
