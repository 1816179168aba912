package lint

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/crdmigrator/markers"
)

func TestFindingsAreNeverNull(t *testing.T) {
	cases := map[string]struct {
		reason string
		list   any
		want   string
	}{
		"no findings": {
			reason: "nothing to correct is a list, too",
			list:   findingList(nil),
			want:   `{"apiVersion":"cli.godwit.dev/v1alpha1","kind":"MarkerFindingList","items":[]}`,
		},
		"an empty finding": {
			reason: "every field is there, in the order of the contract",
			list:   findingList([]markers.Finding{{}}),
			want: `{"apiVersion":"cli.godwit.dev/v1alpha1","kind":"MarkerFindingList","items":[{"file":"","line":0,"type":"",` +
				`"reason":"","message":""}]}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := render.Encode(&out, tc.list); err != nil {
				t.Fatal(err)
			}
			got := strings.NewReplacer("\n", "", "    ", "", `": `, `":`).Replace(out.String())
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
