package kubevirt

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit/revision/reference"
)

// TestMemory: a result is found once for equal data, and a memory stays small.
func TestMemory(t *testing.T) {
	t.Parallel()
	var m memory[int]
	found := 0
	ask := func(data string) int {
		return m.of([]byte(data), func() int { found++; return len(data) })
	}
	for range 3 {
		if got := ask("abc"); got != 3 {
			t.Errorf("the memory has %d for data of 3 bytes", got)
		}
	}
	if found != 1 {
		t.Errorf("the result for equal data was found %d times, want once", found)
	}
	found = 0
	for range 2 {
		ask("")
		ask(strings.Repeat("x", maxRememberedBytes+1))
	}
	if found != 4 {
		t.Errorf("results for no data and for large data were found %d times, want 4: they are not remembered", found)
	}
	for i := range 3 * maxRemembered {
		ask("data " + strconv.Itoa(i))
	}
	if len(m.values) > maxRemembered {
		t.Errorf("the memory has %d values, want at most %d", len(m.values), maxRemembered)
	}
}

// TestEqualDataAreCheckedForEachReference: what is remembered of data is not what a reference takes
// them for.
func TestEqualDataAreCheckedForEachReference(t *testing.T) {
	t.Parallel()
	data := whole(v1alpha1, preference, `{"cpu":{"preferredCPUTopology":"preferCores"},"remembered":true}`)
	first, err := Family{}.Decode(storing(data), reference.ExpectedType{Kind: preference})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (Family{}).Decode(storing(data), reference.ExpectedType{Kind: instancetype}); err == nil {
		t.Error("a reference that takes a preference for an instance type is believed, after one that doesn't")
	}
	once, err := Family{}.Convert(first, v1beta1)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Family{}.Decode(storing(data), reference.ExpectedType{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("equal data are read otherwise after a conversion (-first +second):\n%s", diff)
	}
	twice, err := Family{}.Convert(second, v1beta1)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(once, twice); diff != "" {
		t.Errorf("equal data are converted otherwise the second time (-first +second):\n%s", diff)
	}
}
