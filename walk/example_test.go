package walk_test

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/walk"
)

// Example walks over five objects in pages of two. The first request for
// x/bar-tailed finds the server busy, x/hudsonian has been deleted meanwhile,
// and x/marbled is not valid.
func Example() {
	flock := []*bird{
		{"x", "asian"}, {"x", "bar-tailed"}, {"x", "black-tailed"}, {"x", "hudsonian"}, {"x", "marbled"},
	}
	// A fetch is one list call with a limit and a continue token.
	fetch := func(_ context.Context, limit int64, token string) (walk.Page[*bird], string, error) {
		from := 0
		_, _ = fmt.Sscan(token, &from)
		to := min(from+int(limit), len(flock))
		page := walk.Page[*bird]{Items: flock[from:to], ResourceVersion: "100", Remaining: int64(len(flock) - to)}
		if to == len(flock) {
			return page, "", nil
		}
		return page, fmt.Sprint(to), nil
	}
	// An action sends its requests, through the limiter's RoundTripper where
	// there is one, and says what the answer means.
	s := &server{requests: map[string]int{}, scripts: map[string]script{
		"x/bar-tailed": {"429", "ok"},
		"x/hudsonian":  {"404"},
		"x/marbled":    {"422"},
	}}
	act := func(ctx context.Context, b *bird) (godwit.Outcome, error) {
		switch err := play(ctx, s.next(b)); {
		case err == nil:
			return godwit.Migrated, nil
		case apierrors.IsNotFound(err):
			return godwit.Gone, nil
		default:
			return godwit.Failed, err // Run retries it if it is transient
		}
	}

	ctx := context.Background()
	pages := walk.List(ctx, fetch, walk.ListOptions{PageObjects: 2})
	report, err := walk.Run(ctx, pages, act, walk.Options{
		OnPage: func(_ context.Context, r walk.Report) error {
			fmt.Println("of", r.Counts.Total()+r.Remaining, "objects") // an error would stop the walk here
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%+v\n", report.Counts)
	fmt.Println("settled up to", report.Cursor)
	for _, f := range report.Failures {
		fmt.Println("look at", f.Namespace, f.Name)
	}
	// Output:
	// of 5 objects
	// of 5 objects
	// of 5 objects
	// {Migrated:3 Unchanged:0 Skipped:0 Gone:1 Deferred:0 Failed:1}
	// settled up to x/hudsonian
	// look at x marbled
}
