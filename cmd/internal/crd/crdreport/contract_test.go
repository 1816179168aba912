package crdreport

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

func TestArraysAreNeverNull(t *testing.T) {
	cases := map[string]struct {
		reason string
		list   any
		want   string
	}{
		"no plans": {
			reason: "a command that failed early prints a list as well",
			list:   PlanList(nil),
			want:   `{"apiVersion":"cli.godwit.dev/v1alpha1","kind":"CRDPlanList","items":[]}`,
		},
		"an empty plan": {
			reason: "objects is null if not counted, since 0 would be a claim; unlisted and preflight are null as well",
			list:   PlanList([]Plan{{}}),
			want: `{"apiVersion":"cli.godwit.dev/v1alpha1","kind":"CRDPlanList","items":[{"name":"","state":"","storageVersion":"",` +
				`"servedVersions":[],"storedVersions":[],"objects":null,"unlisted":null,"managedFields":"","blockers":[],"warnings":[],"preflight":null}]}`,
		},
		"a plan without a list": {
			reason: "a program reads the reason and whether to retry",
			list:   PlanList([]Plan{{State: "Unknown", Unlisted: &Unlisted{render.Problem{Reason: "Throttled", Message: "m", Remedy: "r"}, true}}}),
			want: `{"apiVersion":"cli.godwit.dev/v1alpha1","kind":"CRDPlanList","items":[{"name":"","state":"Unknown","storageVersion":"",` +
				`"servedVersions":[],"storedVersions":[],"objects":null,"unlisted":{"reason":"Throttled","message":"m","remedy":"r","transient":true},` +
				`"managedFields":"","blockers":[],"warnings":[],"preflight":null}]}`,
		},
		"no runs": {
			reason: "a command that failed early prints a list as well",
			list:   RunList(nil),
			want:   `{"apiVersion":"cli.godwit.dev/v1alpha1","kind":"CRDRunReportList","items":[]}`,
		},
		"an empty run": {
			reason: "every field is present, in the order of the contract",
			list:   RunList([]Run{{Objects: render.ObjectsOf(godwit.Counts{Migrated: 2, Failed: 1})}}),
			want: `{"apiVersion":"cli.godwit.dev/v1alpha1","kind":"CRDRunReportList","items":[{"name":"","storageVersion":"","result":"","dryRun":false,` +
				`"objects":{"total":3,"migrated":2,"unchanged":0,"skipped":0,"gone":0,"deferred":0,"failed":1},` +
				`"managedFields":{"cleaned":0,"deferred":0,"failed":0},"requests":0,"durationSeconds":0,"trimmed":false,"values":null,` +
				`"ownerReferences":{"state":"NotRead","repaired":0,"found":0,"left":0,"failed":0},"unlisted":null,"failures":[]}]}`,
		},
		"no diagnoses": {
			reason: "a command that failed early prints a list as well, and what could not be read is no null",
			list:   NoDoctorReport(),
			want:   `{"apiVersion":"cli.godwit.dev/v1alpha1","kind":"CRDDoctorReportList","items":[],"objects":0,"unread":[]}`,
		},
		"no checks": {
			reason: "a command that failed early prints a list as well",
			list:   CheckList(nil),
			want:   `{"apiVersion":"cli.godwit.dev/v1alpha1","kind":"CRDCheckList","items":[]}`,
		},
		"an empty check": {
			reason: "no reason is an empty list",
			list:   CheckList([]Check{{}}),
			want: `{"apiVersion":"cli.godwit.dev/v1alpha1","kind":"CRDCheckList","items":[{"name":"","result":"",` +
				`"removedVersions":[],"reasons":[],"steps":null}]}`,
		},
		"a check with a reason": {
			reason: "each reason has a result of its own",
			list:   CheckList([]Check{{Result: "Safe", Reasons: []Finding{{"Safe", render.Problem{Reason: "NotDryRun"}}}}}),
			want: `{"apiVersion":"cli.godwit.dev/v1alpha1","kind":"CRDCheckList","items":[{"name":"","result":"Safe",` +
				`"removedVersions":[],"reasons":[{"result":"Safe","reason":"NotDryRun","message":"","remedy":""}],"steps":null}]}`,
		},
		"no results": {
			reason: "a command that failed early prints a list as well",
			list:   VerificationList(nil),
			want:   `{"apiVersion":"cli.godwit.dev/v1alpha1","kind":"CRDVerifyReportList","items":[]}`,
		},
		"an empty result": {
			reason: "the map is an object, and unreadableWhy is not in the contract",
			list:   VerificationList([]Verification{{UnreadableWhy: "secret"}}),
			want: `{"apiVersion":"cli.godwit.dev/v1alpha1","kind":"CRDVerifyReportList","items":[{"name":"","storageVersion":"",` +
				`"objects":0,"byVersion":{},"unreadable":0}]}`,
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

func TestCommandsAreNotEscaped(t *testing.T) {
	var out bytes.Buffer
	plans := PlanList([]Plan{{Blockers: []render.Problem{{Remedy: "kubectl a && kubectl b <file>"}}}})
	if err := render.Encode(&out, plans); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "kubectl a && kubectl b <file>") {
		t.Errorf("the remedy is escaped and can't be copied:\n%s", &out)
	}
}

func TestUnreadableObjectsAreNotProven(t *testing.T) {
	cases := map[string]struct {
		report Verification
		want   bool
	}{
		"no object":      {Verification{StorageVersion: "v2"}, true},
		"all at v2":      {Verification{StorageVersion: "v2", Objects: 2, ByVersion: map[string]int64{"v2": 2}}, true},
		"one at v1":      {Verification{StorageVersion: "v2", Objects: 2, ByVersion: map[string]int64{"v2": 1, "v1": 1}}, false},
		"one unreadable": {Verification{StorageVersion: "v2", Objects: 2, ByVersion: map[string]int64{"v2": 1}, Unreadable: 1}, false},
	}
	for name, tc := range cases {
		if got := tc.report.Proven(); got != tc.want {
			t.Errorf("%s: Proven() = %v", name, got)
		}
	}
}
