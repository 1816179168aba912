package remedy

import (
	"slices"
	"strings"
	"testing"

	"github.com/godwit-dev/godwit"
)

const crdGroup, crdResource = "apiextensions.k8s.io", "customresourcedefinitions"

// TestText has one case for each action.
func TestText(t *testing.T) {
	crd := godwit.Object{Resource: "crd", Name: "widgets.example.com"}
	w := Writer{Program: "kubectl godwit", Cluster: " --context=prod", Administrator: " --context=prod"}
	cases := map[string]struct {
		reason string
		fix    godwit.Fix
		want   string
	}{
		"nothing":      {"a blocker without a fix", nil, ""},
		"words":        {"only the user knows how", godwit.Do("fix the webhook"), "fix the webhook"},
		"two ways":     {"the best first", godwit.Do("a").Or(godwit.Do("b"), nil, godwit.Do("c")), "a; or b; or c"},
		"two steps":    {"one after the other, in each way", godwit.Do("a").Or(godwit.Do("b")).Then("c"), "a; then c; or b; then c"},
		"a step first": {"before each way", godwit.Do("a").Or(godwit.Do("b")).After("c"), "c; then a; or c; then b"},
		"two commands": {
			"the second runs if the first succeeds", godwit.Do("a", godwit.PlanMigration{CRD: "x"}, godwit.VerifyMigration{CRD: "x"}),
			"a: kubectl godwit crd plan x --context=prod && kubectl godwit crd verify x --etcd-servers=URL --context=prod",
		},
		"a rescue": {
			"to its end, or back", godwit.Do("a", godwit.RescueObjects{CRD: "x", WithoutWebhook: true}).Or(godwit.Do("b", godwit.RescueObjects{CRD: "x", Undo: true})),
			"a: kubectl godwit crd rescue x --conversion=none --context=prod; or b: kubectl godwit crd rescue x --undo --context=prod",
		},
		"run": {"the default", godwit.Do("a", godwit.RunMigration{CRD: "x"}), "a: kubectl godwit crd run x --context=prod"},
		"run, with flags": {
			"as the user would type them", godwit.Do("a", godwit.RunMigration{CRD: "x", Write: "Update", DryRun: true, AcceptDenials: true}),
			"a: kubectl godwit crd run x --accept-denials --write=Update --dry-run=server --context=prod",
		},
		"an upgrade": {
			"settings are flags", godwit.Do("a", godwit.UpgradeRevisions{Namespace: "shop", OnRunning: "Hold", TargetVersion: "v2", AllowLosses: true}),
			"a: kubectl godwit revision run -n shop --target-version=v2 --on-running=Hold --loss-policy=Allow --context=prod",
		},
		"revisions": {
			"commands about one revision", godwit.Do("a", godwit.PlanRevisions{Namespace: "shop"}, godwit.RollBackRevision{Namespace: "shop", Name: "x"}),
			"a: kubectl godwit revision plan -n shop --context=prod && kubectl godwit revision rollback x -n shop --context=prod",
		},
		"a revision to correct": {
			"only the user knows the values", godwit.Do("a", godwit.FixRevision{Namespace: "shop", Name: "x", Owner: "VirtualMachine/web", Labels: []string{"a.io/object-uid"}}),
			"a: kubectl godwit revision fix x -n shop --context=prod --owner=VirtualMachine/web --label=a.io/object-uid=UID",
		},
		"patch": {
			"the body is one word to the shell", godwit.Do("a", godwit.Patch{Object: crd, Subresource: "status", Type: godwit.PatchJSON, Body: `[{"value": "it's"}]`}),
			`a: kubectl patch crd widgets.example.com --subresource=status --type=json -p '[{"value": "it'\''s"}]' --context=prod`,
		},
		"patch of what another manager owns": {
			"its next apply conflicts", godwit.Do("a", godwit.Patch{Object: crd, Type: godwit.PatchMerge, Body: `{}`, Owner: godwit.Owner{Manager: "flux", ServerSide: true}}),
			`a (the next server-side apply by flux then conflicts, unless it has --force-conflicts): kubectl patch crd widgets.example.com --type=merge -p '{}' --context=prod`,
		},
		"patch of what a client-side apply sets": {
			"no conflict tells its user", godwit.Do("a", godwit.Patch{Object: crd, Type: godwit.PatchMerge, Body: `{}`, Owner: godwit.Owner{Manager: "kubectl apply"}}),
			`a (the next kubectl apply of the manifest sets it back): kubectl patch crd widgets.example.com --type=merge -p '{}' --context=prod`,
		},
		"annotate": {
			"the value is one word to the shell", godwit.Do("a", godwit.Annotate{Object: godwit.Object{Resource: "widgets.example.com", Namespace: "prod", Name: "w"}, Key: "example.com/name", Value: "a b"}),
			"a: kubectl annotate --overwrite widgets.example.com -n prod w 'example.com/name=a b' --context=prod",
		},
		"names of a namespace": {
			"as they were", godwit.Do("a", godwit.RollBackNames{Resource: "members.example.com", Namespace: "prod"}).Or(godwit.Do("b", godwit.RollBackNames{Resource: "members.example.com"})),
			"a: kubectl godwit externalname rollback --resource=members.example.com --namespace=prod --context=prod; or b: kubectl godwit externalname rollback --resource=members.example.com --all-namespaces --context=prod",
		},
		"edit": {
			"an object of a namespace", godwit.Do("a", godwit.Edit{Object: godwit.Object{Resource: "widgets.example.com", Namespace: "prod", Name: "w"}}),
			"a: kubectl edit widgets.example.com -n prod w --context=prod",
		},
		"delete": {
			"a lease", godwit.Do("a", godwit.Delete{Object: godwit.Object{Resource: "lease", Namespace: "kube-system", Name: "l"}}),
			"a: kubectl delete lease -n kube-system l --context=prod",
		},
		"show": {
			"objects by label", godwit.Do("a", godwit.Show{Object: godwit.Object{Resource: "endpointslices", Namespace: "op"}, Selector: "a=b", Output: "yaml"}),
			"a: kubectl get endpointslices -n op -l a=b -o yaml --context=prod",
		},
		"request": {
			"the path is quoted", godwit.Do("a", godwit.Request{Path: "/readyz?verbose", Verbose: true}),
			"a: kubectl get --raw '/readyz?verbose' -v=8 --context=prod",
		},
		"wait": {
			"not for ever", godwit.Do("a", godwit.WaitFor{Object: crd, Condition: "Established"}),
			"a: kubectl wait --for=condition=Established --timeout=60s crd/widgets.example.com --context=prod",
		},
		"check": {"a release", godwit.Do("a", godwit.CheckRelease{File: "a b.yaml"}), "a: kubectl godwit crd check -f 'a b.yaml' --context=prod"},
		"try":   {"a file", godwit.Do("a", godwit.TryFile{File: "FILE"}), "a: kubectl apply --server-side --dry-run=server -f FILE --context=prod"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := w.Text(tc.fix); got != tc.want {
				t.Errorf("%s\n%s\nwant\n%s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestGrantCommand(t *testing.T) {
	cases := map[string]struct {
		reason string
		grant  godwit.GrantPermission
		user   string
		flags  []string
	}{
		"user": {
			reason: "kubectl takes resource.group",
			grant:  godwit.GrantPermission{Verb: "list", Group: "example.com", Resource: "widgets"},
			user:   "jane",
			flags:  []string{"--verb=list", "--resource=widgets.example.com", "--user=jane"},
		},
		"service account": {
			reason: "kubectl takes namespace:name",
			grant:  godwit.GrantPermission{Verb: "patch", Group: "example.com", Resource: "widgets"},
			user:   "system:serviceaccount:godwit:manager",
			flags:  []string{"--verb=patch", "--resource=widgets.example.com", "--serviceaccount=godwit:manager"},
		},
		"node": {
			reason: "other names of the system are users",
			grant:  godwit.GrantPermission{Verb: "patch", Group: "example.com", Resource: "widgets"},
			user:   "system:node:cp-1",
			flags:  []string{"--user=system:node:cp-1"},
		},
		"unknown": {
			reason: "the user fills in the name",
			grant:  godwit.GrantPermission{Verb: "patch", Group: "example.com", Resource: "widgets"},
			flags:  []string{"--user=USER"},
		},
		"subresource": {
			reason: "kubectl takes resource.group/subresource",
			grant:  godwit.GrantPermission{Verb: "patch", Group: crdGroup, Resource: crdResource + "/status", Name: "widgets.example.com"},
			user:   "jane",
			flags:  []string{"--resource=customresourcedefinitions.apiextensions.k8s.io/status"},
		},
		"deep group": {
			reason: "the group keeps its dots",
			grant:  godwit.GrantPermission{Verb: "patch", Group: "a.b.example.com", Resource: "widgets"},
			user:   "jane",
			flags:  []string{"--resource=widgets.a.b.example.com"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.grant.User = tc.user
			command := grant(tc.grant)
			words := strings.Fields(command)
			for _, flag := range tc.flags {
				if !slices.Contains(words, flag) {
					t.Errorf("%s\n%s\nlacks %s", tc.reason, command, flag)
				}
			}
			role := words[3]
			if strings.ContainsAny(role, "/.:") {
				t.Errorf("role name %q is not one that a URL path takes", role)
			}
			if !slices.Contains(words, "--clusterrole="+role) {
				t.Errorf("%s\nbinds another role than it creates", command)
			}
		})
	}
}

func TestGrantCommandsDoNotCollide(t *testing.T) {
	commands := map[string]godwit.GrantPermission{}
	for _, g := range []godwit.GrantPermission{
		{Verb: "list", Group: "example.com", Resource: "widgets"},
		{Verb: "patch", Group: "example.com", Resource: "widgets"},
		{Verb: "patch", Group: crdGroup, Resource: crdResource, Name: "widgets.example.com"},
		{Verb: "patch", Group: crdGroup, Resource: crdResource + "/status", Name: "widgets.example.com"},
	} {
		g.User = "jane"
		role := strings.Fields(grant(g))[3]
		if other, taken := commands[role]; taken {
			t.Errorf("%+v and %+v both create role %s: the second command would fail", other, g, role)
		}
		commands[role] = g
	}
}

// TestAdministratorsCommandDoesNotImpersonate: the user who lacks the permission can't edit a policy.
func TestAdministratorsCommandDoesNotImpersonate(t *testing.T) {
	w := Writer{Program: "godwit", Cluster: " --context=prod --as=alice", Administrator: " --context=prod"}
	policy := godwit.Object{Resource: "validatingadmissionpolicy", Name: "audit"}
	for want, action := range map[string]godwit.Action{
		"kubectl edit validatingadmissionpolicy audit --context=prod":           godwit.Edit{Object: policy},
		"kubectl delete validatingadmissionpolicy audit --context=prod":         godwit.Delete{Object: policy},
		"kubectl get validatingadmissionpolicy audit --context=prod --as=alice": godwit.Show{Object: policy},
	} {
		if got := w.Commands(action); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestManagerWordsSettingsAsFields: a reader of a status changes a spec, and runs no command of Godwit.
func TestManagerWordsSettingsAsFields(t *testing.T) {
	const another = "a: delete the upgrade, or the trigger that created it, and create another with `targetVersion: v2` in its spec"
	for name, test := range map[string]struct {
		action           godwit.Action
		upgrade, explain string
	}{
		"hold": {godwit.UpgradeRevisions{Namespace: "shop", OnRunning: "Hold"},
			`a: kubectl patch controllerrevisionupgrade -n shop web --type=merge -p '{"spec": {"onRunning": "Hold"}}'`, "a: set `onRunning: Hold` in the spec of the upgrade or its trigger"},
		"losses": {godwit.UpgradeRevisions{Namespace: "shop", AllowLosses: true},
			`a: kubectl patch controllerrevisionupgrade -n shop web --type=merge -p '{"spec": {"lossPolicy": "Allow"}}'`, "a: set `lossPolicy: Allow` in the spec of the upgrade or its trigger"},
		"hold a rollback": {godwit.RollBackRevision{Namespace: "shop", Name: "old", OnRunning: "Hold"},
			`a: kubectl patch controllerrevisionupgrade -n shop web --type=merge -p '{"spec": {"onRunning": "Hold"}}'`, "a: godwit revision rollback old -n shop --on-running=Hold"},
		"target":      {godwit.UpgradeRevisions{Namespace: "shop", TargetVersion: "v2"}, another, another},
		"no setting":  {godwit.UpgradeRevisions{Namespace: "shop"}, "a: godwit revision run -n shop", "a: godwit revision run -n shop"},
		"a roll back": {godwit.RollBackRevision{Namespace: "shop", Name: "old"}, "a: godwit revision rollback old -n shop", "a: godwit revision rollback old -n shop"},
	} {
		fix := godwit.Do("a", test.action)
		if got := Manager.OfUpgrade("shop", "web").Text(fix); got != test.upgrade {
			t.Errorf("%s, of an upgrade: %s, want %s", name, got, test.upgrade)
		}
		if got := Manager.Text(fix); got != test.explain {
			t.Errorf("%s: %s, want %s", name, got, test.explain)
		}
	}
}
