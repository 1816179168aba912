package cluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/direct"
)

// TestStoredAddress: a migration is continued only with the address of the target hub that the command has.
//
// Matrix: H130.
func TestStoredAddress(t *testing.T) {
	ours := clusterv1.ClientConfig{URL: "https://hub2:6443", CABundle: []byte("a CA\n")}
	for name, test := range map[string]struct {
		reason  string
		stored  clusterv1.ClientConfig
		refused bool
	}{
		"Same":      {"It is the address of the context, or of the flags.", ours, false},
		"Newline":   {"The same CA.", clusterv1.ClientConfig{URL: ours.URL, CABundle: []byte("a CA")}, false},
		"OtherURL":  {"Another client could have changed it.", clusterv1.ClientConfig{URL: "https://thief:6443", CABundle: ours.CABundle}, true},
		"OtherCA":   {"The same, and a thief in between would be trusted.", clusterv1.ClientConfig{URL: ours.URL, CABundle: []byte("another CA")}, true},
		"WithoutCA": {"The same, with the CAs of the system.", clusterv1.ClientConfig{URL: ours.URL}, true},
	} {
		m := &api.ManagedClusterMigration{ObjectMeta: metav1.ObjectMeta{Name: "move"}}
		if err := direct.KeepAddress(m, test.stored); err != nil {
			t.Fatal(err)
		}
		if why, err := otherAddress(m, ours); (why != "") != test.refused || err != nil {
			t.Errorf("%s: %s Got %q, %v", name, test.reason, why, err)
		}
	}
	if _, err := otherAddress(&api.ManagedClusterMigration{}, ours); err == nil {
		t.Error("a migration without an address is continued")
	}
}
