package resource

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/cmd/internal/crd/etcd"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/resource/resourcepermission"
	"github.com/godwit-dev/godwit/cmd/internal/resource/resourcereport"
	"github.com/godwit-dev/godwit/crdmigrator/etcdverify"
	"github.com/godwit-dev/godwit/internal/quote"
	"github.com/godwit-dev/godwit/internal/storageversion/resource"
)

type verifyOptions struct {
	*frame.App
	selection
	expect string
	output frame.Output
	etcd   etcd.Options
}

func verifyCommand(a *frame.App) *cobra.Command {
	o := &verifyOptions{App: a}
	c := &cobra.Command{
		Use:   "verify {RESOURCE... | --all} [-n NAMESPACE] --etcd-servers=URL [--expect=FORM]",
		Short: "Prove from etcd with which key, or at which version, every object is stored",
		Long: "Read etcd and count the objects of each resource by the form in which they are stored: what\n" +
			"kube-apiserver writes in front of an encrypted object, as in k8s:enc:aescbc:v1:key2, with the ID of\n" +
			"the key for KMS v2; or the apiVersion of an object that is not encrypted. The command only reads,\n" +
			"and prints nothing of an object's content.\n\n" +
			"With --expect, a resource is Proven if every object has this form. Without it, a resource is\n" +
			"Uniform if all objects have the same form. Without --etcd-servers, nothing is known: NotVerified.\n\n" +
			"Use the etcd flags of kube-apiserver. On a kubeadm control plane node, they are in\n" +
			"/etc/kubernetes/manifests/kube-apiserver.yaml.\n\n" +
			"Results: Proven, Uniform, NotProven (objects are stored in other forms, or are unreadable),\n" +
			"NotVerified (etcd was not read).\n" +
			"Exit codes: 0 all are Proven or Uniform, 1 some are NotProven, 2 some are NotVerified, or error,\n" +
			"3 a resource is not in etcd.",
		Example: "  # Before you remove key1: is every Secret encrypted with key2?\n" +
			"  " + a.Program + " resource verify secrets --expect=k8s:enc:aescbc:v1:key2 --etcd-servers=https://127.0.0.1:2379 \\\n" +
			"    --etcd-cafile=/etc/kubernetes/pki/etcd/ca.crt \\\n" +
			"    --etcd-certfile=/etc/kubernetes/pki/apiserver-etcd-client.crt \\\n" +
			"    --etcd-keyfile=/etc/kubernetes/pki/apiserver-etcd-client.key",
		ValidArgsFunction: completeNames(a),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.parse(a, c, args); err != nil {
				return err
			}
			return o.run(c.Context())
		},
	}
	o.addTo(c)
	c.Flags().StringVar(&o.expect, "expect", "", "form that every object must have, as in k8s:enc:aescbc:v1:key2 or autoscaling/v2")
	o.etcd.AddTo(c.Flags())
	o.output.AddTo(c, resourcereport.VerificationList(nil))
	return c
}

func (o *verifyOptions) run(ctx context.Context) error {
	var kv *etcd.Client
	if len(o.etcd.Servers) > 0 {
		var err error
		if kv, err = etcd.Open(ctx, o.etcd); err != nil {
			return err
		}
		defer func() { _ = kv.Close() }()
	}
	s, findings, err := connectAndPlan(ctx, o.App, resourcepermission.Verify, &o.selection, resource.Options{})
	if err != nil {
		return err
	}
	s.nameLacking(ctx, findings, &o.selection)
	if kv != nil {
		if err := o.isOfCluster(ctx, s, kv); err != nil {
			return err
		}
	}
	items := make([]resourcereport.Verification, 0, len(findings))
	code := frame.OK
	for _, f := range findings {
		if refusals := f.plan.Refusals(); len(refusals) > 0 && !f.lacksKey() {
			b := render.NewProblem(refusals[0], o.Remedies())
			o.Console.Problem(fmt.Errorf("%s: %s; %s", b.Reason, b.Message, b.Remedy))
			code = frame.Worst(code, frame.Refused)
			continue
		}
		item, err := o.verify(ctx, kv, f)
		if err != nil {
			return err
		}
		items = append(items, item)
		code = frame.Worst(code, codeOf(item))
	}
	if err := frame.Print(o.App, o.output, resourcereport.VerificationList(items), resourcereport.WriteVerifications); err != nil {
		return err
	}
	return frame.Exit(code)
}

func codeOf(v resourcereport.Verification) frame.Code {
	switch v.Result {
	case resourcereport.NotProven:
		return frame.Pending
	case resourcereport.NotVerified:
		return frame.Error
	}
	return frame.OK
}

// isOfCluster returns an error unless the namespace kube-system of this cluster is in this etcd.
func (o *verifyOptions) isOfCluster(ctx context.Context, s *session, kv *etcd.Client) error {
	uid, err := s.ClusterID(ctx)
	if err != nil {
		return s.explain(ctx, &o.selection, err)
	}
	contains, err := kv.Contains(ctx, "namespaces/"+metav1.NamespaceSystem, uid)
	if err != nil {
		return err
	}
	if !contains {
		return fmt.Errorf("etcd at %s does not have the namespace kube-system of %s under %s: this is not the etcd of this cluster, or --etcd-prefix is "+
			"wrong; compare with kube-apiserver's own flags --etcd-servers and --etcd-prefix", strings.Join(o.etcd.Servers, ","), s.Where(), o.etcd.Prefix)
	}
	return nil
}

// verify counts the objects of one resource in etcd.
func (o *verifyOptions) verify(ctx context.Context, kv *etcd.Client, f finding) (resourcereport.Verification, error) {
	item := resourcereport.Verification{Name: f.name, Result: resourcereport.NotVerified, Expected: o.expect}
	if kv == nil {
		item.Message = "not verified: etcd was not read, and no API shows how an object is stored"
		item.Remedy = "run it again on a control plane node, with --etcd-servers and the other etcd flags of kube-apiserver"
		return item, nil
	}
	r := f.plan.Resource
	folder := etcdverify.Folder(r.GroupResource(), r.Custom)
	forms, err := etcdverify.ScanForms(ctx, kv, o.etcd.Prefix, folder, o.namespace)
	if err != nil {
		return item, err
	}
	item.Objects, item.ByForm, item.Unreadable = forms.Objects, forms.ByForm, forms.Unreadable
	if f.lacksKey() {
		item.Result = resourcereport.NotProven
		item.Message, item.Remedy, err = o.lostKey(ctx, kv, f)
		return item, err
	}
	written := f.plan.Objects != nil && *f.plan.Objects > 0
	switch {
	case forms.Objects == 0 && written:
		item.Message = fmt.Sprintf("not verified: the API server has objects, and etcd has none under %s/%s", o.etcd.Prefix, folder)
		item.Remedy = "see in the flags --etcd-servers-overrides of kube-apiserver whether another etcd has them"
	case o.expect != "" && forms.Proven(o.expect):
		item.Result = resourcereport.Proven
	case o.expect == "" && forms.Uniform():
		item.Result = resourcereport.Uniform
	default:
		item.Result = resourcereport.NotProven
		item.Message = "objects are stored in other forms than expected"
		if o.expect == "" {
			item.Message = "objects are stored in several forms"
		}
		if forms.Unreadable > 0 {
			item.Message = "objects are stored in a form that is not known, the first: " + forms.UnreadableWhy
		}
		item.Remedy = "write them again, once every API server has the new configuration: " + o.runCommand(f.name)
	}
	return item, nil
}

// lostKey names the encryption key that the API server lacks, as it is in etcd before an object.
func (o *verifyOptions) lostKey(ctx context.Context, kv *etcd.Client, f finding) (message, remedy string, err error) {
	lost := "a key in etcd"
	if f.plan.Encrypted != "" {
		form, err := etcdverify.FormAt(ctx, kv, f.plan.Encrypted)
		if err != nil {
			return "", "", err
		}
		if form != "" {
			lost = form
		}
	}
	message = fmt.Sprintf("the API server lacks %s, with which objects are encrypted, such as %s", lost, cmp.Or(f.plan.Encrypted, "one that it does not name"))
	remedy = "put that key back as the last one of its provider, in the encryption configuration of every API server; then write the objects again: " + o.runCommand(f.name)
	return message, remedy, nil
}

// runCommand returns the command that writes the objects again.
func (o *verifyOptions) runCommand(name string) string {
	words := "resource run " + name
	if o.namespace != "" {
		words += " -n " + quote.Shell(o.namespace)
	}
	return o.Hint(words)
}
