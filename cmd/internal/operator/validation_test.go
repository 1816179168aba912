package operator

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// TestServerRefusesInvalidSpecs: each message names the field and says what to write.
func TestServerRefusesInvalidSpecs(t *testing.T) {
	c := newCluster(t)
	for reason, test := range map[string]struct {
		name, spec string
		says       string // empty: it is fine
	}{
		"nothing is said":            {spec: "{}"},
		"everything is said":         {spec: "{suspend: true, phases: [StorageVersionMigration], write: Update, settle: 90s, trim: true, maxInFlight: 4, maxWritesPerSecond: 20}"},
		"cleaning alone":             {spec: "{phases: [CleanupManagedFields], trim: false}"},
		"no settle time":             {spec: "{settle: 0s}"},
		"a name that no CRD has":     {name: "widgets", spec: "{}", says: "named after its CustomResourceDefinition"},
		"a trim without a migration": {spec: "{phases: [CleanupManagedFields], trim: true}", says: "trim: true needs the phase StorageVersionMigration"},
		"no phase at all":            {spec: "{phases: []}", says: "spec.phases"},
		"a phase twice":              {spec: "{phases: [CleanupManagedFields, CleanupManagedFields]}", says: "Duplicate"},
		"a phase of another name":    {spec: "{phases: [Migrate]}", says: "supported values"},
		"a write of another name":    {spec: "{write: put}", says: "supported values"},
		"a time below zero":          {spec: "{settle: -1s}", says: "settle is a duration from 0s to 24h"},
		"a time that is none":        {spec: "{settle: soon}", says: "settle"},
		"no request at once":         {spec: "{maxInFlight: 0}", says: "spec.maxInFlight"},
		"no write per second":        {spec: "{maxWritesPerSecond: 0}", says: "spec.maxWritesPerSecond"},
	} {
		name := test.name
		if name == "" {
			name = "widgets." + c.group
		}
		o := &unstructured.Unstructured{Object: map[string]any{}}
		if err := yaml.Unmarshal([]byte("spec: "+test.spec), &o.Object); err != nil {
			t.Fatal(err)
		}
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: "godwit.dev", Version: "v1alpha1", Kind: "CRDMigration"})
		o.SetName(name)
		err := c.Create(t.Context(), o, client.DryRunAll)
		switch {
		case test.says == "" && err != nil:
			t.Errorf("%s: %v", reason, err)
		case test.says != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.says)):
			t.Errorf("%s: %v, want a refusal that says %q", reason, err, test.says)
		}
	}
}
