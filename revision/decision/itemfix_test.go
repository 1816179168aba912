package decision

import (
	"testing"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/fixtest"
	"github.com/godwit-dev/godwit/revision/reference"
)

// TestItemFixes: each item says what the explanation of its reason says.
func TestItemFixes(t *testing.T) {
	t.Parallel()
	known := &candidates{
		owners: []reference.Owner{{Kind: "VirtualMachine", Name: "web"}, {Kind: "VirtualMachine", Name: "db"}},
		labels: []string{"instancetype.kubevirt.io/object-name"}, targets: []string{"v1beta1", "v1"},
	}
	items := map[string]Item{
		"blocked": {candidates: known, References: []ReferenceStatus{{Kind: "VirtualMachine", Path: "/spec/instancetype/revisionName"}}},
		"unknown": {References: []ReferenceStatus{{Kind: "VirtualMachine", Path: "/status/instancetypeRef/name", State: ReferenceOld}}},
		"fixed":   {References: []ReferenceStatus{{Kind: "VirtualMachineSnapshotContent", Path: "/spec/x", State: ReferenceFixed}}},
	}
	fixed := 0
	for _, r := range Reasons.Reasons() {
		for name, i := range items {
			i.Namespace, i.Name, i.Reason = "shop", "web-u1.medium", r
			for _, fix := range []godwit.Fix{i.Fix(), i.RollbackFix()} {
				if err := fixtest.Check(godwit.Finding{Reason: r, Fix: fix}); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				fixed += len(fix)
			}
		}
	}
	if fixed == 0 {
		t.Error("no item has a fix")
	}
}
