package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReport(t *testing.T) {
	for name, test := range map[string]struct {
		in     []string
		out    string
		table  []string // its lines, with single spaces, without the first one
		failed bool
		reason string
	}{
		"passed": {
			in: []string{
				`test: the workspace`,
				`{"Action":"start","Package":"a"}`,
				`{"Action":"run","Package":"a","Test":"TestOne"}`,
				`{"Action":"output","Package":"a","Test":"TestOne","Output":"=== RUN TestOne\n"}`,
				`{"Action":"pass","Package":"a","Test":"TestOne/sub","Elapsed":2}`,
				`{"Action":"pass","Package":"a","Test":"TestOne","Elapsed":2.5}`,
				`{"Action":"skip","Package":"a","Test":"TestTwo","Elapsed":0}`,
				`{"Action":"output","Package":"a","Output":"PASS\n"}`,
				`{"Action":"output","Package":"a","Output":"ok  \ta\t3.000s\n"}`,
				`{"Action":"pass","Package":"a","Elapsed":3}`,
			},
			out:    "test: the workspace\nok  \ta\t3.000s\n",
			table:  []string{"a 3.0 2 TestOne 2.5", "1 packages, one after another 3.0"},
			reason: "a passed test prints nothing, its subtests are part of it, and a line of make is printed",
		},
		"failed": {
			in: []string{
				`{"Action":"output","Package":"a","Test":"TestOne","Output":"one.go:1: wrong\n"}`,
				`{"Action":"output","Package":"a","Test":"TestTwo","Output":"right\n"}`,
				`{"Action":"fail","Package":"a","Test":"TestOne","Elapsed":1}`,
				`{"Action":"pass","Package":"a","Test":"TestTwo","Elapsed":1}`,
				`{"Action":"output","Package":"a","Output":"FAIL\ta\t2.000s\n"}`,
				`{"Action":"fail","Package":"a","Elapsed":2}`,
			},
			out:    "one.go:1: wrong\nFAIL\ta\t2.000s\n",
			table:  []string{"a 2.0 2 TestOne 1.0", "1 packages, one after another 2.0"},
			failed: true,
			reason: "only the failed test's output is printed",
		},
		"build failure": {
			in: []string{
				`{"ImportPath":"a","Action":"build-output","Output":"a.go:1: syntax error\n"}`,
				`{"ImportPath":"a","Action":"build-fail"}`,
			},
			out:    "a.go:1: syntax error\n",
			table:  []string{"0 packages, one after another 0.0"},
			failed: true,
			reason: "a package that does not compile has no event of its own",
		},
		"longest first, two runs are added": {
			in: []string{
				`{"Action":"pass","Package":"a","Elapsed":1}`,
				`{"Action":"pass","Package":"b","Elapsed":3}`,
				`{"Action":"pass","Package":"a","Elapsed":1.5}`,
				`{"Action":"skip","Package":"c","Elapsed":0}`,
			},
			table:  []string{"b 3.0 0 0.0", "a 2.5 0 0.0", "2 packages, one after another 5.5"},
			reason: "module 1 is tested at its floor and in the workspace; a package without tests is not listed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out, table strings.Builder
			r := newReport(&out)
			if err := r.read(strings.NewReader(strings.Join(test.in, "\n"))); err != nil {
				t.Fatal(err)
			}
			if err := r.writeTable(&table); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.out, out.String()); diff != "" {
				t.Errorf("%s: printed (-want +got):\n%s", test.reason, diff)
			}
			var lines []string
			for line := range strings.Lines(strings.TrimSpace(table.String())) {
				lines = append(lines, strings.Join(strings.Fields(line), " "))
			}
			if diff := cmp.Diff(test.table, lines[1:]); diff != "" {
				t.Errorf("%s: table (-want +got):\n%s", test.reason, diff)
			}
			if r.failed != test.failed {
				t.Errorf("%s: failed is %v", test.reason, r.failed)
			}
		})
	}
}
