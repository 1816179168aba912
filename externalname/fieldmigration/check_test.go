package fieldmigration_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/godwit-dev/godwit/externalname/fieldmigration"
)

var samples = []database{{Size: 7}, {Size: 7, Region: "us1"}, {Region: "eu1", Disk: &disk{SizeGB: 7}}}

// 51: a function that changes what it has filled itself, or that depends on more than its argument, is found.
func TestCheck(t *testing.T) {
	count := 0
	cases := map[string]struct {
		reason string
		fill   func(database) database
		fails  any
	}{
		"idempotent": {
			reason: "it fills what is missing", fill: fill,
		},
		"a prefix each time": {
			reason: "the samples show it",
			fill:   func(d database) database { d.Region = "x" + d.Region; return d },
			fails:  new(*fieldmigration.NotIdempotentError),
		},
		"one field after the other": {
			reason: "it migrates in two passes, which is seen only on an object that no sample has",
			fill: func(d database) database {
				switch {
				case d.Region == "us1" && d.Disk != nil:
					d.Region = "us2"
				case d.Region == "":
					d.Region = "us1"
				}
				return d
			},
			fails: new(*fieldmigration.NotIdempotentError),
		},
		"changes its argument": {
			reason: "what Fill does to its argument is not what it returns",
			fill: func(d database) database {
				if d.Disk != nil {
					d.Disk.SizeGB++
				}
				return database{Region: d.Region}
			},
		},
		"a counter": {
			reason: "a name that is made by chance or by a clock differs each time",
			fill: func(d database) database {
				if count++; d.Region == "" {
					d.Size = int64(count)
				}
				return d
			},
			fails: new(*fieldmigration.NotPureError),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := fieldmigration.Migration[database]{Fill: tc.fill}.Check(samples...)
			switch {
			case tc.fails == nil && err != nil:
				t.Errorf("%s: %v", tc.reason, err)
			case tc.fails != nil && !errors.As(err, tc.fails):
				t.Errorf("%s: %v, want %T", tc.reason, err, tc.fails)
			}
		})
	}
	if err := databases.Check(); err == nil {
		t.Error("without samples nothing is checked, and the check passes")
	}
	if err := steps.Migration().Check(
		map[string]any{"name": "a", "size": int64(7)}, map[string]any{"disk": map[string]any{"sizeGB": int64(5)}},
	); err != nil {
		t.Error(err)
	}
}

func TestErrorsOfCheckShowTheFields(t *testing.T) {
	err := fieldmigration.Migration[database]{Fill: func(d database) database { d.Size++; return d }}.Check(database{Region: "eu1", Size: 1})
	want := `Fill is not idempotent: of {"region":"eu1","size":1} it makes {"region":"eu1","size":2}, and of that {"region":"eu1","size":3}`
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	err = fieldmigration.Migration[map[string]any]{Fill: func(f map[string]any) map[string]any { return f }}.Check(map[string]any{"f": func() {}})
	if err == nil || !strings.Contains(err.Error(), "unsupported type") {
		t.Errorf("a sample that is not JSON: %v", err)
	}
}

func FuzzFill(f *testing.F) { databases.Fuzz(f, samples...) }
