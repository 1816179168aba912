package revision

import "testing"

// TestWeight: namespaces share what Run has under way, and none takes so much that it would never
// get its turn.
func TestWeight(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason   string
		upgrades int
		want     int
	}{
		"nothing to do":     {"its scan takes a turn", 0, 1},
		"a small namespace": {"many go side by side", 30, 30},
		"several batches":   {"one of them is under way at a time", 300, batchSize},
		"the largest share": {"another one writes while it is scanned", upgradesAtOnce, batchSize},
		"a large namespace": {"its index is as large as those of many others", upgradesAtOnce + 1, upgradesAtOnce},
	} {
		if got := weight(tc.upgrades); got != tc.want {
			t.Errorf("%s: %d upgrades weigh %d, want %d: %s", name, tc.upgrades, got, tc.want, tc.reason)
		}
	}
	if upgradesAtOnce < 2*batchSize {
		t.Errorf("%d upgrades at once: no namespace writes while another one with a full batch is scanned", upgradesAtOnce)
	}
}
