package walk_test

import (
	"context"
	"slices"
	"strconv"
	"testing"

	"github.com/godwit-dev/godwit/walk"
)

// TestPagesFollowTheSizeOfObjects: the first page is small, later ones have as many objects as fit, and no page is more than four times
// the one before.
func TestPagesFollowTheSizeOfObjects(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		options walk.ListOptions
		bytes   int64 // of one object; 0 if unknown
		want    []int64
	}{
		"small":              {"as large as the option says", walk.ListOptions{PageBytes: walk.DefaultPageBytes}, 1000, []int64{50, 200, 500, 500, 500, 500}},
		"large":              {"8 MiB of 240 KiB each are 34", walk.ListOptions{PageBytes: walk.DefaultPageBytes}, 240 << 10, []int64{50, 34, 34, 34, 34, 34}},
		"larger than a page": {"one at least", walk.ListOptions{PageBytes: 1000}, 2000, []int64{50, 1, 1, 1, 1, 1}},
		"unknown":            {"pages grow", walk.ListOptions{PageBytes: 1000}, 0, []int64{50, 200, 500, 500, 500, 500}},
		"small pages":        {"the option is the most", walk.ListOptions{PageBytes: walk.DefaultPageBytes, PageObjects: 20}, 1000, []int64{20, 20, 20, 20, 20, 20}},
		"by count only":      {"as before", walk.ListOptions{}, 240 << 10, []int64{500, 500, 500, 500, 500, 500}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []int64
			fetch := func(_ context.Context, limit int64, token string) (walk.Page[int], string, error) {
				n, _ := strconv.Atoi(token)
				asked = append(asked, limit)
				next := strconv.Itoa(n + 1)
				if n+1 == len(c.want) {
					next = ""
				}
				return walk.Page[int]{Items: make([]int, limit), Bytes: c.bytes * limit}, next, nil
			}
			for _, err := range walk.List(t.Context(), fetch, c.options) {
				if err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(asked, c.want) {
				t.Errorf("%s: pages of %v objects, want %v", c.reason, asked, c.want)
			}
		})
	}
}
