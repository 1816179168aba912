package crd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdpermission"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/crd/etcd"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/crdmigrator/etcdverify"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
)

type verifyOptions struct {
	*frame.App
	Selection
	output frame.Output
	etcd   etcd.Options
}

func verifyCommand(a *frame.App) *cobra.Command {
	o := &verifyOptions{App: a}
	c := &cobra.Command{
		Use:   "verify [NAME...] [-l SELECTOR] --etcd-servers=URL",
		Short: "Prove from etcd that every object is at the storage version",
		Long: "Read etcd and count the objects of each CRD by the version at which they are stored. This\n" +
			"proof does not depend on what API servers report. The command only reads.\n\n" +
			"Use the etcd flags of kube-apiserver. On a kubeadm control plane node, they are in\n" +
			"/etc/kubernetes/manifests/kube-apiserver.yaml.\n\n" +
			"Results: Proven (every object is at the storage version), NotProven (some objects are at an\n" +
			"old version or unreadable).\n" +
			"Exit codes: 0 all are Proven, 1 some are NotProven, 2 error.",
		Example: "  # On a kubeadm control plane node\n  " + a.Program + " crd verify --etcd-servers=https://127.0.0.1:2379 \\\n" +
			"    --etcd-cafile=/etc/kubernetes/pki/etcd/ca.crt \\\n" +
			"    --etcd-certfile=/etc/kubernetes/pki/apiserver-etcd-client.crt \\\n" +
			"    --etcd-keyfile=/etc/kubernetes/pki/apiserver-etcd-client.key",
		ValidArgsFunction: CompleteNames(a),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Parse(c, args, true); err != nil {
				return err
			}
			if len(o.etcd.Servers) == 0 {
				return frame.Usagef("specify --etcd-servers, with the value of the same flag of kube-apiserver")
			}
			return o.run(c.Context())
		},
	}
	o.AddTo(c)
	o.etcd.AddTo(c.Flags())
	o.output.AddTo(c, crdreport.VerificationList(nil))
	return c
}

func (o *verifyOptions) run(ctx context.Context) error {
	kv, err := etcd.Open(ctx, o.etcd)
	if err != nil {
		return err
	}
	defer func() { _ = kv.Close() }()
	s, findings, err := connectAndPlan(ctx, o.App, crdpermission.Verify, o.Selection, storageversion.Options{})
	if err != nil {
		return err
	}
	items, err := s.scanAll(ctx, kv, o.etcd, findings)
	if err != nil {
		return err
	}
	for i := range items {
		found := slices.IndexFunc(findings, func(f finding) bool { return f.name == items[i].Name })
		if items[i].Remedy == "" {
			items[i].Remedy = o.repair(findings[found], items[i].ByVersion)
		}
	}
	if err := frame.Print(o.App, o.output, crdreport.VerificationList(items), crdreport.WriteVerifications); err != nil {
		return err
	}
	printProblems(o.App, findings)
	return frame.Exit(verifyCode(items, findings))
}

func verifyCode(items []crdreport.Verification, findings []finding) frame.Code {
	code := frame.OK
	for _, item := range items {
		if !item.Proven() {
			code = frame.Worst(code, frame.Pending)
		}
	}
	for _, f := range findings {
		if f.problem != nil {
			code = frame.Worst(code, frame.Error)
		}
	}
	return code
}

// errOtherEtcd means that etcd has no data of this cluster under the prefix.
var errOtherEtcd = errors.New("this is not the etcd of this cluster, or --etcd-prefix is wrong")

// scanAll scans the CRDs that could be read, and adds the errors to the findings. If no CRD is
// in this etcd, it returns one error for all.
func (s *session) scanAll(ctx context.Context, kv *etcd.Client, o etcd.Options, findings []finding) ([]crdreport.Verification, error) {
	var items []crdreport.Verification
	var other error
	for i := range findings {
		f := &findings[i]
		if f.problem != nil {
			continue
		}
		item, err := s.scan(ctx, kv, o, *f)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err == nil:
			items = append(items, item)
			continue
		case errors.Is(err, errOtherEtcd) && other == nil:
			other = err
		}
		f.problem = &frame.ActionableError{Reason: render.ReasonUnreadable, Message: frame.OneLine(err), Cause: err}
	}
	if len(items) == 0 && other != nil {
		return nil, other
	}
	return items, nil
}

// scan counts the objects of one CRD in etcd.
func (s *session) scan(ctx context.Context, kv *etcd.Client, o etcd.Options, f finding) (crdreport.Verification, error) {
	crd := f.facts.CRD
	contains, err := kv.Contains(ctx, kube.CRDs.Group+"/"+kube.CRDs.Resource+"/"+f.name, crd.UID)
	if err != nil {
		return crdreport.Verification{}, err
	}
	if !contains {
		return crdreport.Verification{}, fmt.Errorf("etcd at %s has no %s of %s under %s: %w; compare with kube-apiserver's own "+
			"flags --etcd-servers and --etcd-prefix", strings.Join(o.Servers, ","), f.name, s.Where(), o.Prefix, errOtherEtcd)
	}
	count, err := etcdverify.Scan(ctx, kv, o.Prefix, schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural})
	if err != nil {
		return crdreport.Verification{}, err
	}
	item := crdreport.Verification{
		Name:           f.name,
		StorageVersion: f.plan.StorageVersion,
		Objects:        count.Objects,
		ByVersion:      count.ByVersion,
		Unreadable:     count.Unreadable,
		UnreadableWhy:  count.UnreadableWhy,
	}
	other := count.Namespaced
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		other = count.Objects - count.Namespaced
	}
	if other > 0 {
		found := decision.OtherScope(crd, decision.Unreachable{Objects: other, Example: "those that the first command shows"})
		item.Remedy = found.Message + "; " + s.remedies.Text(found.Fix)
	}
	return item, nil
}

// missingVersions returns the versions that objects are stored at and that spec.versions does
// not contain. Until they are in spec.versions again, the API server cannot read these objects
// and accepts none of these versions in status.storedVersions.
func missingVersions(f finding, byVersion map[string]int64) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(byVersion)), func(version string) bool {
		return slices.ContainsFunc(f.facts.CRD.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	})
}

// repair returns the commands that migrate objects at other versions. An interrupted run is resumed. If status.storedVersions does not
// contain these versions, the commands first correct it and remove the checkpoint, since a run relies on both. The API server can't
// read objects at a version that is missing in spec.versions: a rescue does all of this.
func (o *verifyOptions) repair(f finding, byVersion map[string]int64) string {
	if len(missingVersions(f, byVersion)) > 0 {
		return o.Remedies().Commands(godwit.RescueObjects{CRD: f.name})
	}
	var actions []godwit.Action
	if f.plan.Trimmed {
		stored := slices.Sorted(maps.Keys(byVersion))
		if !slices.Contains(stored, f.plan.StorageVersion) {
			stored = append(stored, f.plan.StorageVersion)
		}
		actions = append(actions, kube.SetStoredVersions(f.name, stored...))
		if _, ok := f.facts.CRD.Annotations[evidence.CheckpointAnnotation]; ok {
			actions = append(actions, kube.RemoveAnnotation(kube.CRDObject(f.name), evidence.CheckpointAnnotation))
		}
	}
	return o.Remedies().Commands(append(actions, godwit.RunMigration{CRD: f.name})...)
}
