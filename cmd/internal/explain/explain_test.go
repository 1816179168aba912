package explain

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/reason"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

func explain(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out := &bytes.Buffer{}
	streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: out}
	c := Command(frame.New([]string{"godwit"}, streams, clock.RealClock{}))
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(args)
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestExplain(t *testing.T) {
	cases := map[string]struct {
		args  []string
		reads []string
	}{
		"one":             {[]string{"Partial"}, []string{"Partial (conditions and events of a CRDMigration, godwit crd run)\n", "\n  Condition:  Stalled\n  Event:      Warning\n"}},
		"in lower case":   {[]string{"lossy"}, []string{"Lossy (godwit revision,", "\n  What to do: If nothing needs"}},
		"of two subjects": {[]string{"Forbidden"}, []string{"(godwit crd plan,", "(godwit revision,"}},
		"all":             {nil, []string{"godwit crd plan, godwit crd run, status.blockers of a CRDMigration\n  NotEstablished, ", "godwit crd rescue\n", " Undecodable,", "godwit explain 'MESSAGE'\n"}},
		"a message":       {[]string{`CustomResourceDefinition "a.b" is invalid: status.storedVersions[0]: Invalid value: "v1": missing from spec.versions`}, []string{"StoredVersionRemoved (godwit crd check)\n"}},
	}
	for name, tc := range cases {
		got, err := explain(t, tc.args...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range tc.reads {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is not in:\n%s", name, want, got)
			}
		}
	}
}

func TestExplainJSON(t *testing.T) {
	got, err := explain(t, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var list render.List[reason.Explanation]
	if err := json.Unmarshal([]byte(got), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range list.Items {
		names = append(names, r.Reason)
	}
	if !slices.Equal(slices.Compact(names), reason.Names()) || list.Kind != "ReasonList" {
		t.Errorf("%s of %d reasons, want a ReasonList of all %d", list.Kind, len(names), len(reason.Names()))
	}
}

// TestExplainMessages: each message that people search for has reasons, each of one subject.
func TestExplainMessages(t *testing.T) {
	for text, want := range map[string][]string{
		"UPGRADE FAILED: unable to build kubernetes objects from current release manifest: resource mapping not found: no matches for kind \"Store\"": {"HelmReleaseNotServed"},
		"request to convert CR from an invalid group/version: example.com/v1":                                                                         {"UnreadableObjects", "StoredVersionNotInSpec"},
		"request to convert CR to an invalid group/version: example.com/v1":                                                                           {"ManagedFieldsRemovedVersion"},
		"failed to convert new object: .spec.skip: field not declared in schema":                                                                      {"ManagedFieldsRemovedVersion"},
		`Post "https://webhook.system.svc:443/convert": no endpoints available for service "webhook"`:                                                 {"ConversionServiceNotFound", "WebhookUnavailable"},
		`failed to decode object in ControllerRevision: no kind "VirtualMachineInstancetype" is registered`:                                           {"Unreadable", "SourceGone"},
		`no matches for kind "Backup" in version "example.com/v1"`:                                                                                    {"LastAppliedNotServed", "NotServed"},
		"the server could not find the requested resource":                                                                                            {"LastAppliedNotServed", "NotServed"},
		"etcdserver: mvcc: database space exceeded":                                                                                                   {"EtcdFull"},
		"etcdserver: request is too large":                                                                                                            {"ObjectTooLarge"},
		"Internal error occurred: no matching prefix found":                                                                                           {"EncryptionKeyMissing"},
		"all is well": nil,
	} {
		var got []string
		for _, e := range findMessage(text) {
			got = append(got, e.Reason)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	for _, m := range messages {
		if text := m.words.String(); len(m.reasons) == 0 {
			t.Errorf("%s has no reasons", text)
		}
	}
}

func TestExplainSuggests(t *testing.T) {
	for given, want := range map[string]string{
		"StoredVersionNotinspek": "did you mean StoredVersionNotInSpec?",
		"Lossi":                  "did you mean Lossy?",
		"Zzzzzz":                 "list all reasons: godwit explain",
		"all is well":            `no reason is known for the message "all is well"; give other words of it`,
	} {
		_, err := explain(t, given)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", given, err, want)
		}
	}
}

func TestComplete(t *testing.T) {
	if got := complete([]string{"StoredVersionRemoved"}, "storedVersion"); !slices.Equal(got, []string{"StoredVersionNotInSpec", "StoredVersionsDoubtful", "StoredVersionsTrusted"}) {
		t.Errorf("completed %v", got)
	}
}
