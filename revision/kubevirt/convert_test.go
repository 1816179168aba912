package kubevirt

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit/revision/reference"
)

func TestConvert(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason  string
		version string
		kind    string
		spec    string
		want    string
		losses  []string
	}{
		"instance type": {
			reason: "these four are always there at v1beta1, since KubeVirt's own conversion sets them",
			kind:   instancetype, spec: `{"cpu":{"guest":4,"numa":{"guestMappingPassthrough":{}}},"memory":{"guest":"8Gi"}}`,
			want: `{"cpu":{"dedicatedCPUPlacement":false,"guest":4,"isolateEmulatorThread":false,"model":"","numa":{"guestMappingPassthrough":{}}},"memory":{"guest":"8Gi"}}`,
		},
		"instance type, set": {
			reason: "what is set stays, the quantity as it was written",
			kind:   instancetype, spec: `{"cpu":{"guest":4,"model":"Skylake","dedicatedCPUPlacement":true,"isolateEmulatorThread":true},"memory":{"guest":8589934592}}`,
			want: `{"cpu":{"dedicatedCPUPlacement":true,"guest":4,"isolateEmulatorThread":true,"model":"Skylake"},"memory":{"guest":8589934592}}`,
		},
		"instance type, empty": {
			reason: "Go's types have no cpu that could be absent",
			kind:   instancetype, spec: `null`,
			want: `{"cpu":{"dedicatedCPUPlacement":false,"guest":0,"isolateEmulatorThread":false,"model":""},"memory":{"guest":"0"}}`,
		},
		"topology": {
			reason: "the constants are the same",
			kind:   preference, spec: `{"cpu":{"preferredCPUTopology":"preferThreads"},"firmware":{"preferredUseEfi":true,"preferredUseSecureBoot":false}}`,
			want: `{"cpu":{"preferredCPUTopology":"preferThreads"},"firmware":{"preferredUseEfi":true,"preferredUseSecureBoot":false}}`,
		},
		"no topology": {
			reason: "empty meant none",
			kind:   preference, spec: `{"cpu":{"preferredCPUTopology":""}}`, want: `{"cpu":{}}`,
		},
		"unknown field": {
			reason: "carried through, and said",
			kind:   preference, spec: `{"devices":{"preferredTeleporter":{"range":1.50}}}`, want: `{"devices":{"preferredTeleporter":{"range":1.50}}}`,
			losses: []string{"spec.devices.preferredTeleporter"},
		},
		"a field of the future": {
			reason: "it had no effect at v1alpha1, and gets none",
			kind:   preference, spec: `{"volumes":{"preferredStorageClassName":"fast"},"devices":{"preferredInterfaceMasquerade":{}}}`, want: `{"devices":{}}`,
			losses: []string{"spec.devices.preferredInterfaceMasquerade", "spec.volumes"},
		},
		"a field of its own version": {
			reason: "volumes came with v1alpha2", version: v1alpha2,
			kind: preference, spec: `{"volumes":{"preferredStorageClassName":"fast"}}`, want: `{"volumes":{"preferredStorageClassName":"fast"}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.version == "" {
				test.version = v1alpha1
			}
			before, err := Family{}.Decode(storing(whole(test.version, test.kind, test.spec)), reference.ExpectedType{})
			if err != nil {
				t.Fatal(err)
			}
			untouched := mustEncode(t, before.Object)
			got, err := Family{}.Convert(before, v1beta1)
			if err != nil {
				t.Fatal(err)
			}
			if got.Version != v1beta1 || got.Object["apiVersion"] != "instancetype.kubevirt.io/v1beta1" || got.Object["kind"] != test.kind {
				t.Errorf("it is now a %v %v of version %s", got.Object["apiVersion"], got.Object["kind"], got.Version)
			}
			if diff := cmp.Diff(test.want, mustEncode(t, got.Object["spec"])); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			if diff := cmp.Diff(test.losses, got.Losses); diff != "" {
				t.Errorf("%s: losses (-want +got):\n%s", test.reason, diff)
			}
			if diff := cmp.Diff(untouched, mustEncode(t, before.Object)); diff != "" {
				t.Errorf("the object that was given changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestConvertRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ from, to string }{
		"back":            {from: v1beta1, to: v1alpha2},
		"within alpha":    {from: v1alpha1, to: v1alpha2},
		"to the future":   {from: v1beta1, to: "v1"},
		"from the future": {from: "v1", to: v1beta1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Family{}.Decode(storing(whole(test.from, preference, `{}`)), reference.ExpectedType{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := (Family{}).Convert(s, test.to); err == nil || !strings.Contains(err.Error(), test.to) {
				t.Errorf("error %v, want one that names %s", err, test.to)
			}
		})
	}
}

func mustEncode(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
