package stash_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit/revision/kubevirt"
	"github.com/godwit-dev/godwit/revision/reference"
	"github.com/godwit-dev/godwit/test/kubevirt/stash"
)

// names are written out, since what makes names is tested by them.
var names = []struct{ fixture, before, after string }{
	{
		"F0/VirtualMachineInstancetype/apiVersion",
		"f0-vminstancetype-web.medium-0b9c5a0e-31a4-4c52-9a43-4f0f6dfd7a01-3",
		"f0-vminstancetype-web.medium-v1beta1-0b9c5a0e-31a4-4c52-9a43-4f0f6dfd7a01-3",
	},
	{
		"F0/VirtualMachineClusterInstancetype/empty",
		"f0-vmclusterinstancetype-u1.medium-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1",
		"f0-vmclusterinstancetype-u1.medium-v1beta1-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1",
	},
	{
		"F0/VirtualMachinePreference/apiVersion",
		"f0-vmpref-debian.web-a8e6a2d1-9f0d-4f6e-b7c4-3a5c1a0ce203-2",
		"f0-vmpref-debian.web-v1beta1-a8e6a2d1-9f0d-4f6e-b7c4-3a5c1a0ce203-2",
	},
	{
		"F0/VirtualMachineClusterPreference/empty",
		"f0-vmcpref-fedora-e41f7b36-2c8f-4c0f-8d6f-90a1d4c66f04-12",
		"f0-vmcpref-fedora-v1beta1-e41f7b36-2c8f-4c0f-8d6f-90a1d4c66f04-12",
	},
	{
		"F1/VirtualMachineInstancetype/unlabelled",
		"f1-vminstancetype-unlabelled-web.medium-0b9c5a0e-31a4-4c52-9a43-4f0f6dfd7a01-3",
		"f1-vminstancetype-unlabelled-web.medium-v1beta1-0b9c5a0e-31a4-4c52-9a43-4f0f6dfd7a01-3",
	},
	{
		"F1/VirtualMachineInstancetype/labelled",
		"f1-vminstancetype-labelled-web.medium-0b9c5a0e-31a4-4c52-9a43-4f0f6dfd7a01-3",
		"f1-vminstancetype-labelled-web.medium-v1beta1-0b9c5a0e-31a4-4c52-9a43-4f0f6dfd7a01-3",
	},
	{
		"F1/VirtualMachineClusterInstancetype/unlabelled",
		"f1-vmclusterinstancetype-unlabelled-u1.medium-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1",
		"f1-vmclusterinstancetype-unlabelled-u1.medium-v1beta1-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1",
	},
	{
		"F1/VirtualMachineClusterInstancetype/labelled",
		"f1-vmclusterinstancetype-labelled-u1.medium-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1",
		"f1-vmclusterinstancetype-labelled-u1.medium-v1beta1-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1",
	},
	{
		"F1/VirtualMachinePreference/unlabelled",
		"f1-vmpref-unlabelled-debian.web-a8e6a2d1-9f0d-4f6e-b7c4-3a5c1a0ce203-2",
		"f1-vmpref-unlabelled-debian.web-v1beta1-a8e6a2d1-9f0d-4f6e-b7c4-3a5c1a0ce203-2",
	},
	{
		"F1/VirtualMachinePreference/labelled",
		"f1-vmpref-labelled-debian.web-a8e6a2d1-9f0d-4f6e-b7c4-3a5c1a0ce203-2",
		"f1-vmpref-labelled-debian.web-v1beta1-a8e6a2d1-9f0d-4f6e-b7c4-3a5c1a0ce203-2",
	},
	{
		"F1/VirtualMachineClusterPreference/unlabelled",
		"f1-vmcpref-unlabelled-fedora-e41f7b36-2c8f-4c0f-8d6f-90a1d4c66f04-12",
		"f1-vmcpref-unlabelled-fedora-v1beta1-e41f7b36-2c8f-4c0f-8d6f-90a1d4c66f04-12",
	},
	{
		"F1/VirtualMachineClusterPreference/labelled",
		"f1-vmcpref-labelled-fedora-e41f7b36-2c8f-4c0f-8d6f-90a1d4c66f04-12",
		"f1-vmcpref-labelled-fedora-v1beta1-e41f7b36-2c8f-4c0f-8d6f-90a1d4c66f04-12",
	},
	{
		"F2/VirtualMachineInstancetype/unlabelled",
		"f2-vminstancetype-unlabelled-web.medium-0b9c5a0e-31a4-4c52-9a43-4f0f6dfd7a01-3",
		"f2-vminstancetype-unlabelled-web.medium-v1beta1-0b9c5a0e-31a4-4c52-9a43-4f0f6dfd7a01-3",
	},
	{
		"F2/VirtualMachineInstancetype/labelled",
		"f2-vminstancetype-labelled-web.medium-0b9c5a0e-31a4-4c52-9a43-4f0f6dfd7a01-3",
		"f2-vminstancetype-labelled-web.medium-v1beta1-0b9c5a0e-31a4-4c52-9a43-4f0f6dfd7a01-3",
	},
	{
		"F2/VirtualMachineClusterInstancetype/unlabelled",
		"f2-vmclusterinstancetype-unlabelled-u1.medium-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1",
		"f2-vmclusterinstancetype-unlabelled-u1.medium-v1beta1-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1",
	},
	{
		"F2/VirtualMachineClusterInstancetype/labelled",
		"f2-vmclusterinstancetype-labelled-u1.medium-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1",
		"f2-vmclusterinstancetype-labelled-u1.medium-v1beta1-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1",
	},
	{
		"F2/VirtualMachinePreference/unlabelled",
		"f2-vmpref-unlabelled-debian.web-a8e6a2d1-9f0d-4f6e-b7c4-3a5c1a0ce203-2",
		"f2-vmpref-unlabelled-debian.web-v1beta1-a8e6a2d1-9f0d-4f6e-b7c4-3a5c1a0ce203-2",
	},
	{
		"F2/VirtualMachinePreference/labelled",
		"f2-vmpref-labelled-debian.web-a8e6a2d1-9f0d-4f6e-b7c4-3a5c1a0ce203-2",
		"f2-vmpref-labelled-debian.web-v1beta1-a8e6a2d1-9f0d-4f6e-b7c4-3a5c1a0ce203-2",
	},
	{
		"F2/VirtualMachineClusterPreference/unlabelled",
		"f2-vmcpref-unlabelled-fedora-e41f7b36-2c8f-4c0f-8d6f-90a1d4c66f04-12",
		"f2-vmcpref-unlabelled-fedora-v1beta1-e41f7b36-2c8f-4c0f-8d6f-90a1d4c66f04-12",
	},
	{
		"F2/VirtualMachineClusterPreference/labelled",
		"f2-vmcpref-labelled-fedora-e41f7b36-2c8f-4c0f-8d6f-90a1d4c66f04-12",
		"f2-vmcpref-labelled-fedora-v1beta1-e41f7b36-2c8f-4c0f-8d6f-90a1d4c66f04-12",
	},
	{
		"F3/VirtualMachineInstancetype/unlabelled",
		"f3-vminstancetype-unlabelled-web.medium-0b9c5a0e-31a4-4c52-9a43-4f0f6dfd7a01-3",
		"f3-vminstancetype-unlabelled-web.medium-v1beta1-0b9c5a0e-31a4-4c52-9a43-4f0f6dfd7a01-3",
	},
	{
		"F3/VirtualMachineInstancetype/labelled",
		"f3-vminstancetype-labelled-web.medium-v1beta1-0b9c5a0e-31a4-4c52-9a43-4f0f6dfd7a01-3",
		"f3-vminstancetype-labelled-web.medium-v1beta1-0b9c5a0e-31a4-4c52-9a43-4f0f6dfd7a01-3",
	},
	{
		"F3/VirtualMachineClusterInstancetype/unlabelled",
		"f3-vmclusterinstancetype-unlabelled-u1.medium-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1",
		"f3-vmclusterinstancetype-unlabelled-u1.medium-v1beta1-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1",
	},
	{
		"F3/VirtualMachineClusterInstancetype/labelled",
		"f3-vmclusterinstancetype-labelled-u1.medium-v1beta1-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1",
		"f3-vmclusterinstancetype-labelled-u1.medium-v1beta1-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1",
	},
	{
		"F3/VirtualMachinePreference/unlabelled",
		"f3-vmpref-unlabelled-debian.web-a8e6a2d1-9f0d-4f6e-b7c4-3a5c1a0ce203-2",
		"f3-vmpref-unlabelled-debian.web-v1beta1-a8e6a2d1-9f0d-4f6e-b7c4-3a5c1a0ce203-2",
	},
	{
		"F3/VirtualMachinePreference/labelled",
		"f3-vmpref-labelled-debian.web-v1beta1-a8e6a2d1-9f0d-4f6e-b7c4-3a5c1a0ce203-2",
		"f3-vmpref-labelled-debian.web-v1beta1-a8e6a2d1-9f0d-4f6e-b7c4-3a5c1a0ce203-2",
	},
	{
		"F3/VirtualMachineClusterPreference/unlabelled",
		"f3-vmcpref-unlabelled-fedora-e41f7b36-2c8f-4c0f-8d6f-90a1d4c66f04-12",
		"f3-vmcpref-unlabelled-fedora-v1beta1-e41f7b36-2c8f-4c0f-8d6f-90a1d4c66f04-12",
	},
	{
		"F3/VirtualMachineClusterPreference/labelled",
		"f3-vmcpref-labelled-fedora-v1beta1-e41f7b36-2c8f-4c0f-8d6f-90a1d4c66f04-12",
		"f3-vmcpref-labelled-fedora-v1beta1-e41f7b36-2c8f-4c0f-8d6f-90a1d4c66f04-12",
	},
}

// labels that KubeVirt gives to what it stashes of each kind at v1beta1.
var labels = map[string]map[string]string{
	"VirtualMachineInstancetype": {
		"instancetype.kubevirt.io/object-generation": "3",
		"instancetype.kubevirt.io/object-kind":       "VirtualMachineInstancetype",
		"instancetype.kubevirt.io/object-name":       "web.medium",
		"instancetype.kubevirt.io/object-uid":        "0b9c5a0e-31a4-4c52-9a43-4f0f6dfd7a01",
		"instancetype.kubevirt.io/object-version":    "v1beta1",
	},
	"VirtualMachineClusterInstancetype": {
		"instancetype.kubevirt.io/object-generation": "1",
		"instancetype.kubevirt.io/object-kind":       "VirtualMachineClusterInstancetype",
		"instancetype.kubevirt.io/object-name":       "u1.medium",
		"instancetype.kubevirt.io/object-uid":        "5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102",
		"instancetype.kubevirt.io/object-version":    "v1beta1",
	},
	"VirtualMachinePreference": {
		"instancetype.kubevirt.io/object-generation": "2",
		"instancetype.kubevirt.io/object-kind":       "VirtualMachinePreference",
		"instancetype.kubevirt.io/object-name":       "debian.web",
		"instancetype.kubevirt.io/object-uid":        "a8e6a2d1-9f0d-4f6e-b7c4-3a5c1a0ce203",
		"instancetype.kubevirt.io/object-version":    "v1beta1",
	},
	"VirtualMachineClusterPreference": {
		"instancetype.kubevirt.io/object-generation": "12",
		"instancetype.kubevirt.io/object-kind":       "VirtualMachineClusterPreference",
		"instancetype.kubevirt.io/object-name":       "fedora",
		"instancetype.kubevirt.io/object-uid":        "e41f7b36-2c8f-4c0f-8d6f-90a1d4c66f04",
		"instancetype.kubevirt.io/object-version":    "v1beta1",
	},
}

func TestFixtures(t *testing.T) {
	t.Parallel()
	all := stash.All()
	if len(all) != 28 || len(names) != 28 {
		t.Fatalf("there are %d fixtures and %d names, want 28", len(all), len(names))
	}
	for i, f := range all {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			want := names[i]
			vm := stash.VirtualMachine("shop", f.VM, stash.InSpec, f)
			old := f.Revision(vm)
			if f.Name != want.fixture || old.Name != want.before {
				t.Fatalf("%s is called %s, want %s, called %s", f.Name, old.Name, want.fixture, want.before)
			}
			var family kubevirt.Family
			s, err := family.Decode(old, f.Claim())
			if err != nil {
				t.Fatal(err)
			}
			if s.Version != f.Version || s.Object["kind"] != f.Kind || len(s.Losses) > 0 {
				t.Errorf("it holds a %v at %s with losses %v, want a %s at %s", s.Object["kind"], s.Version, s.Losses, f.Kind, f.Version)
			}
			s, err = family.Convert(s, "v1beta1")
			if err != nil {
				t.Fatal(err)
			}
			successor, err := family.Compose(old, s)
			if err != nil {
				t.Fatal(err)
			}
			if successor.Name != want.after {
				t.Errorf("its successor is called\n%s, want\n%s", successor.Name, want.after)
			}
			if diff := cmp.Diff(labels[f.Kind], successor.Labels); diff != "" {
				t.Errorf("labels of its successor (-want +got):\n%s", diff)
			}
			if f.Version == "v1beta1" && string(successor.Data.Raw) != f.Data {
				t.Errorf("data at v1beta1 was rewritten: %s", successor.Data.Raw)
			}
		})
	}
}

// What refers to a fixture is found, as what it is.
func TestReferrers(t *testing.T) {
	t.Parallel()
	for _, f := range stash.All() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			vm := stash.VirtualMachine("shop", f.VM, stash.InSpec|stash.InStatus, f)
			for _, referrer := range (kubevirt.Family{}).Describe().Referrers {
				switch referrer.Resource.Resource {
				case "virtualmachines":
					checkHolding(t, referrer.Read(vm), f, f.RevisionName(f.VM), false)
					checkHolding(t, referrer.Read(stash.Running(vm)), f, f.RevisionName(f.VM), true)
				case "virtualmachinesnapshotcontents":
					checkHolding(t, referrer.Read(stash.SnapshotContent(vm, "nightly", stash.InSpec|stash.InStatus, f)), f, f.RevisionName("nightly"), false)
				}
			}
		})
	}
}

func checkHolding(t *testing.T, got reference.Usage, f stash.Fixture, name string, running bool) {
	t.Helper()
	if len(got.References) != 2 || got.Running != running {
		t.Fatalf("found %+v, want two references and running %t", got, running)
	}
	for _, r := range got.References {
		if r.Revision != name || r.Expected != f.Claim() {
			t.Errorf("%s names %s, a %+v, want %s, a %+v", r.Path, r.Revision, r.Expected, name, f.Claim())
		}
	}
}
