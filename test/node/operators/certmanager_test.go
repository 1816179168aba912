package operators_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/test/node/operators/page"
)

// The releases of cert-manager. The oldest stores v1alpha2, and its webhook does not know v1. The one between converts all versions, and
// stores v1, which is the only version of the newest.
const (
	certManagerOld     = "github.com/jetstack/cert-manager@v0.16.1"
	certManagerBetween = "github.com/jetstack/cert-manager@v1.5.4"
	certManagerNew     = "github.com/cert-manager/cert-manager@v1.21.2"
)

const (
	certManagerGroup     = "cert-manager.io"
	certManagerNamespace = "cert-manager"
	shop                 = "shop"
	// certificates is how many Certificates there are before the upgrade.
	certificates = 50
)

var certManagerKinds = []string{"Certificate", "CertificateRequest", "Issuer", "ClusterIssuer"}

// oldControllers are all that need no ACME server, and no Ingress of extensions/v1beta1.
const oldControllers = "--controllers=issuers,clusterissuers,certificaterequests-issuer-ca,certificaterequests-issuer-selfsigned," +
	"CertificateTrigger,CertificateIssuing,CertificateKeyManager,CertificateRequestManager,CertificateReadiness"

func imageValue(name string) map[string]any {
	return map[string]any{"repository": "localhost/" + name, "tag": "latest", "pullPolicy": "Never"}
}

// certManagerChart returns the chart of a release, whose programs have these names.
func certManagerChart(module, controller, webhook, cainjector string, arguments map[string][]string) chart {
	c := chart{module: module, folder: "deploy/charts/cert-manager", values: map[string]any{
		"image": imageValue(controller), "extraArgs": arguments["controller"],
		"webhook":    map[string]any{"image": imageValue(webhook), "extraArgs": arguments["webhook"]},
		"cainjector": map[string]any{"enabled": cainjector != "", "image": imageValue(cainjector), "extraArgs": arguments["cainjector"]},
		// A Job by which Helm waits for the webhook: the tests wait until Certificates can be created.
		"startupapicheck": map[string]any{"enabled": false},
	}}
	return c
}

func (s *stage) certManagerOld() []*unstructured.Unstructured {
	// The injector of this release knows only versions of CRDs and webhooks that are not served any more.
	c := certManagerChart(certManagerOld, "cert-manager-v0.16-controller", "cert-manager-v0.16-webhook", "",
		map[string][]string{"controller": {oldControllers}})
	c.templates = "deploy/crds"
	return s.render(c, "cert-manager", certManagerNamespace)
}

func (s *stage) certManagerBetween() []*unstructured.Unstructured {
	c := certManagerChart(certManagerBetween, "cert-manager-v1.5-controller", "cert-manager-v1.5-webhook", "cert-manager-v1.5-cainjector", nil)
	c.templates = "deploy/crds"
	return s.render(c, "cert-manager", certManagerNamespace)
}

func (s *stage) certManagerNew() []*unstructured.Unstructured {
	arguments := map[string][]string{}
	for _, component := range []string{"controller", "webhook", "cainjector"} {
		arguments[component] = []string{"--component=" + component}
	}
	c := certManagerChart(certManagerNew, "cert-manager-v1.21", "cert-manager-v1.21", "cert-manager-v1.21", arguments)
	c.values["crds"] = map[string]any{"enabled": true}
	return s.render(c, "cert-manager", certManagerNamespace)
}

// TestCertManager: v0.16 → v1.5 → v1.21. Certificates are issued before, during and after, no Secret changes, and no object loses a field.
func TestCertManager(t *testing.T) {
	s := newStage(t, certManager)
	s.showIfFailed(certManagerNamespace)
	for _, namespace := range []string{certManagerNamespace, shop} {
		if err := s.AwaitNamespace(t.Context(), namespace, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.installOldCertManager()
	s.fillShop()
	old := s.snapshotOf(t.Context(), schema.GroupVersion{Group: certManagerGroup, Version: "v1alpha2"}, certManagerKinds...)
	secrets := s.secrets(t.Context(), shop)

	// The newest release can't be installed, and Godwit says which one converts.
	next, between := s.certManagerNew(), s.certManagerBetween()
	nextCRDs, betweenCRDs := s.write(next, isCRD), s.write(between, isCRD)
	out, err := s.command(t.Context(), "godwit", "crd", "check", "-f", nextCRDs, "--between="+betweenCRDs, "--steps="+filepath.Join(t.TempDir(), "steps"))
	if err == nil || !strings.Contains(out, "ConverterNeeded") || !strings.Contains(out, betweenCRDs) {
		t.Errorf("the check does not name the release that converts: %v\n%s", err, out)
	}

	s.apply(between)
	s.awaitDeployments(certManagerNamespace)
	s.issue("between", "v1")
	lost := s.mustKeep("after the release between", old, s.snapshotOf(t.Context(), schema.GroupVersion{Group: certManagerGroup, Version: "v1alpha2"}, certManagerKinds...)).Lost
	v1 := schema.GroupVersion{Group: certManagerGroup, Version: "v1"}
	before := s.snapshotOf(t.Context(), v1, certManagerKinds...)

	took := s.migrateCertManager(nextCRDs)

	s.apply(next)
	s.awaitDeployments(certManagerNamespace)
	s.issue("after", "v1")
	lost += s.mustKeep("after the upgrade", before, s.snapshotOf(t.Context(), v1, certManagerKinds...)).Lost
	lost += s.mustKeep("after the upgrade, of the Secrets", secrets, s.secrets(t.Context(), shop)).Lost
	s.verifyCertManager()
	record(t, page.Row{
		Operator: "cert-manager", Releases: []string{"v0.16.1 (stores v1alpha2)", "v1.5.4", "v1.21.2 (has v1 alone)"},
		Objects: len(before) + len(secrets), Lost: lost, Took: took,
		Also: fmt.Sprintf("%d of the objects are Secrets, whose data is the same; Certificates are issued before, during and after", len(secrets)),
	})
}

// installOldCertManager installs the oldest release, and writes the CA of its webhook where the injector would.
func (s *stage) installOldCertManager() {
	s.t.Helper()
	objects := s.certManagerOld()
	s.apply(objects)
	var bundle []byte
	s.await("the CA of the webhook", func(ctx context.Context) error {
		secret := &corev1.Secret{}
		err := s.Get(ctx, client.ObjectKey{Namespace: certManagerNamespace, Name: "cert-manager-webhook-ca"}, secret)
		if bundle = secret.Data["ca.crt"]; err == nil && len(bundle) == 0 {
			err = fmt.Errorf("it has keys %v", secret.Data)
		}
		return err
	})
	for _, o := range objects {
		var patch any
		switch {
		case isCRD(o):
			patch = map[string]any{"spec": map[string]any{"conversion": map[string]any{"webhook": map[string]any{"clientConfig": map[string]any{"caBundle": bundle}}}}}
		case strings.HasSuffix(o.GetKind(), "WebhookConfiguration"):
			patch = []map[string]any{{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}}
		default:
			continue
		}
		text, err := json.Marshal(patch)
		if err != nil {
			s.t.Fatal(err)
		}
		kind := map[bool]string{true: "merge", false: "json"}[isCRD(o)]
		s.mustRun("kubectl", "patch", o.GetKind(), o.GetName(), "--type="+kind, "--patch="+string(text))
	}
	s.awaitDeployments(certManagerNamespace)
}

// fillShop makes issuers and Certificates with the fields that are called differently in v1, and waits for their Secrets.
func (s *stage) fillShop() {
	s.t.Helper()
	create := func(version, kind, name string, spec map[string]any) {
		s.t.Helper()
		o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		o.SetAPIVersion(certManagerGroup + "/" + version)
		o.SetKind(kind)
		o.SetName(name)
		if kind != "ClusterIssuer" {
			o.SetNamespace(shop)
		}
		s.await("the creation of "+kind+" "+name, func(ctx context.Context) error { return s.Create(ctx, o) })
	}
	create("v1alpha2", "ClusterIssuer", "self-signed", map[string]any{"selfSigned": map[string]any{}})
	create("v1alpha2", "Certificate", "ca", map[string]any{
		"isCA": true, "commonName": "Geese Inc. CA", "secretName": "ca", "keyAlgorithm": "ecdsa", "duration": "87600h0m0s",
		"organization": []any{"Geese Inc."}, "issuerRef": map[string]any{"kind": "ClusterIssuer", "name": "self-signed"},
	})
	create("v1alpha3", "Issuer", "ca", map[string]any{"ca": map[string]any{"secretName": "ca"}})
	for i := range certificates {
		name := fmt.Sprintf("certificate-%03d", i)
		// v1alpha3 has an object with organizations, where v1alpha2 has a list.
		version, subject := "v1alpha2", map[string]any{"organization": []any{"Geese Inc."}}
		if i%4 == 0 {
			version, subject = "v1alpha3", map[string]any{"subject": map[string]any{"organizations": []any{"Geese Inc."}}}
		}
		spec := map[string]any{
			"secretName": name, "commonName": name, "dnsNames": []any{name + ".example.com"}, "uriSANs": []any{"spiffe://example.com/" + name},
			"keyAlgorithm": "ecdsa", "keySize": int64(256), "keyEncoding": "pkcs8", "duration": "2160h0m0s", "renewBefore": "360h0m0s",
			"usages": []any{"server auth", "client auth"}, "issuerRef": map[string]any{"kind": "Issuer", "name": "ca"},
		}
		maps.Copy(spec, subject)
		create(version, "Certificate", name, spec)
	}
	s.await("all Certificates to be issued", func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: certManagerGroup, Version: "v1alpha2", Kind: "CertificateList"})
		if err := s.List(ctx, list, client.InNamespace(shop)); err != nil {
			return err
		}
		ready := 0
		for i := range list.Items {
			if isReady(&list.Items[i]) {
				ready++
			}
		}
		if ready != certificates+1 {
			return fmt.Errorf("%d of %d are ready", ready, certificates+1)
		}
		return nil
	})
}

func isReady(o *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Ready" {
			return c["status"] == "True"
		}
	}
	return false
}

// issue makes a Certificate, waits until it is issued, and reads what its Secret has.
func (s *stage) issue(name, version string) {
	s.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"secretName": name, "dnsNames": []any{name + ".example.com"}, "privateKey": map[string]any{"algorithm": "ECDSA", "size": int64(256)},
		"issuerRef": map[string]any{"kind": "Issuer", "name": "ca"},
	}}}
	o.SetAPIVersion(certManagerGroup + "/" + version)
	o.SetKind("Certificate")
	o.SetNamespace(shop)
	o.SetName(name)
	// A webhook that has just started may not answer yet.
	s.await("the creation of Certificate "+name, func(ctx context.Context) error { return s.Create(ctx, o) })
	s.awaitIssued(o)
}

func (s *stage) awaitIssued(o *unstructured.Unstructured) {
	s.t.Helper()
	s.await("Certificate "+o.GetName()+" to be issued", func(ctx context.Context) error {
		if err := s.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		if !isReady(o) {
			return fmt.Errorf("its status is %v", o.Object["status"])
		}
		secret := &corev1.Secret{}
		if err := s.Get(ctx, client.ObjectKey{Namespace: shop, Name: o.GetName()}, secret); err != nil {
			return err
		}
		block, _ := pem.Decode(secret.Data[corev1.TLSCertKey])
		if block == nil {
			return fmt.Errorf("its Secret has no certificate")
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return err
		}
		return certificate.VerifyHostname(o.GetName() + ".example.com")
	})
}

// migrateCertManager runs the steps that Godwit has made, while Certificates are issued, and returns how long the steps take.
func (s *stage) migrateCertManager(crds string) time.Duration {
	s.t.Helper()
	steps := filepath.Join(s.t.TempDir(), "steps")
	s.t.Log(s.mustRun("godwit", "crd", "check", "-f", crds, "--steps="+steps))
	type ended struct {
		out  string
		err  error
		took time.Duration
	}
	done := make(chan ended, 1)
	go func() {
		began := time.Now()
		out, err := s.command(s.t.Context(), "sh", filepath.Join(steps, "bridge.sh"))
		done <- ended{out, err, time.Since(began)}
	}()
	for i := 0; ; i++ {
		s.issue(fmt.Sprintf("during-%d", i), "v1")
		select {
		case e := <-done:
			if e.err != nil {
				s.t.Fatalf("%v\n%s", e.err, e.out)
			}
			s.t.Log(e.out)
			return e.took
		case <-time.After(5 * time.Second):
		}
	}
}

// verifyCertManager proves from etcd that all objects are at v1, and reads that the CRDs say so.
func (s *stage) verifyCertManager() {
	s.t.Helper()
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := s.List(s.t.Context(), list); err != nil {
		s.t.Fatal(err)
	}
	var names []string
	for _, crd := range list.Items {
		if !strings.HasSuffix(crd.Spec.Group, certManagerGroup) {
			continue
		}
		names = append(names, crd.Name)
		if len(crd.Status.StoredVersions) != 1 || crd.Status.StoredVersions[0] != "v1" || len(crd.Spec.Versions) != 1 {
			s.t.Errorf("CRD %s has versions %d and storedVersions %v, want v1 alone", crd.Name, len(crd.Spec.Versions), crd.Status.StoredVersions)
		}
	}
	if len(names) != 6 {
		s.t.Errorf("there are CRDs %v, want 6", names)
	}
	s.t.Log(s.mustRun("godwit", append([]string{"crd", "verify", "--etcd-servers=" + s.EtcdEndpoint()}, names...)...))
	for _, plural := range []string{"certificates", "certificaterequests", "issuers", "clusterissuers"} {
		stored, err := s.CountStored(s.t.Context(), certManagerGroup, plural)
		if err != nil || len(stored) != 1 || stored[certManagerGroup+"/v1"] == 0 {
			s.t.Errorf("etcd has %s at %v, want v1 alone: %v", plural, stored, err)
		}
	}
}
