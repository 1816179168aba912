package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/bench/internal/proc"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/jobservice"
	"github.com/godwit-dev/godwit/test/jobservice/provider"
	"github.com/godwit-dev/godwit/test/program"
)

const (
	// fillers prepare objects in parallel.
	fillers = 16
	// reconcilesPerSecond do not limit the provider on the machines that we know.
	reconcilesPerSecond = 1000
	// pollNever keeps the provider from observing when nothing has changed, so that all requests are caused by the measurement.
	pollNever = 24 * time.Hour
	// creationGrace lets an object be deleted soon after it was created. In crossplane-runtime's own 30 s, either controller would
	// observe a deleted resource again and again.
	creationGrace = time.Second
	// pageObjects is kubectl's --chunk-size default.
	pageObjects = 500

	// providerUser is not counted while the command is.
	providerUser = "provider"

	annotationName = "crossplane.io/external-name"
)

// cluster is a control plane with the CRD of databases, the job service, and the program of its provider.
type cluster struct {
	plane    *controlplane.ControlPlane
	dynamic  dynamic.Interface
	core     kubernetes.Interface
	requests *account.Requests // of the user account.Godwit
	service  *jobservice.Process
	client   jobservice.Client
	dir      string
	binary   string // godwit
	program  string // the provider's
	provider *provider.Process
	metrics  string // where the provider serves them
	log      *os.File
}

func newCluster(ctx context.Context, binary string) (c *cluster, err error) {
	c = &cluster{}
	if c.binary, err = filepath.Abs(binary); err != nil {
		return nil, err
	}
	measure.Say("compiling the provider")
	if c.program, err = program.JobProvider(ctx); err != nil {
		return nil, err
	}
	if c.plane, err = controlplane.Start(ctx, controlplane.Options{}); err != nil {
		return nil, err
	}
	if err := c.prepare(ctx); err != nil {
		return nil, errors.Join(err, c.stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *cluster) prepare(ctx context.Context) (err error) {
	crds, err := provider.CRDs()
	if err != nil {
		return err
	}
	if err := controlplane.InstallCRDs(ctx, c.plane.Config(), crds...); err != nil {
		return err
	}
	admin := c.plane.Config()
	admin.QPS = -1
	if c.dynamic, err = dynamic.NewForConfig(admin); err != nil {
		return err
	}
	if c.core, err = kubernetes.NewForConfig(admin); err != nil {
		return err
	}
	if c.requests, err = account.CountRequests(ctx, admin); err != nil {
		return err
	}
	if c.dir, err = os.MkdirTemp("", "godwit-bench-"); err != nil {
		return err
	}
	if c.log, err = os.Create(filepath.Join(c.dir, "provider.log")); err != nil {
		return err
	}
	for _, user := range []string{account.Godwit, providerUser} {
		config, err := account.AddUser(ctx, c.plane, user)
		if err != nil {
			return err
		}
		if err := controlplane.WriteKubeconfig(c.kubeconfig(user), config); err != nil {
			return err
		}
	}
	if c.service, err = jobservice.Start(ctx); err != nil {
		return err
	}
	c.client = jobservice.Client{URL: c.service.URL}
	return nil
}

// kubeconfig is the file of a user.
func (c *cluster) kubeconfig(user string) string {
	return filepath.Join(c.dir, user+".kubeconfig")
}

func (c *cluster) stop(ctx context.Context) error {
	errs := []error{c.stopProvider(ctx)}
	if c.service != nil {
		errs = append(errs, c.service.Stop())
	}
	if c.log != nil {
		errs = append(errs, c.log.Close())
	}
	if c.dir != "" {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	return errors.Join(append(errs, c.plane.Stop())...)
}

// startProvider starts a controller as a user, and returns when it serves metrics.
func (c *cluster) startProvider(ctx context.Context, user string, byHand bool) (err error) {
	address, err := controlplane.FreeAddress()
	if err != nil {
		return err
	}
	c.metrics = "http://" + address + "/metrics"
	c.provider, err = provider.Start(provider.Options{
		Program: c.program, Kubeconfig: c.kubeconfig(user), Service: c.service.URL, ByHand: byHand,
		Poll: pollNever, Rate: reconcilesPerSecond, CreationGrace: creationGrace, Metrics: address, Log: c.log,
	})
	if err != nil {
		return err
	}
	return c.await(ctx, "metrics of the provider", func() (bool, error) {
		_, err := c.reconciles(ctx)
		return err == nil, nil
	})
}

func (c *cluster) stopProvider(ctx context.Context) error {
	if c.provider == nil {
		return nil
	}
	p := c.provider
	c.provider = nil
	return p.Stop(ctx)
}

// reconciles is how many reconciliations the provider has ended.
func (c *cluster) reconciles(ctx context.Context) (n int64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.metrics, nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return 0, fmt.Errorf("parse the provider's metrics: %w", err)
	}
	for _, m := range families["controller_runtime_reconcile_total"].GetMetric() {
		n += int64(m.GetCounter().GetValue())
	}
	return n, nil
}

// count is everything that the provider has done so far.
type count struct {
	api        account.Count
	external   account.Count
	reconciles int64
	cpu        float64
	at         time.Time
}

func (c *cluster) count(ctx context.Context) (n count, err error) {
	if n.api, err = c.requests.Read(ctx); err != nil {
		return n, err
	}
	counts, err := c.service.Requests(ctx)
	if err != nil {
		return n, err
	}
	n.external = account.Count{}
	for pattern, of := range counts {
		n.external[pattern] = int64(of)
	}
	if n.reconciles, err = c.reconciles(ctx); err != nil {
		return n, err
	}
	usage, err := proc.UsageOf(c.provider.PID())
	n.cpu, n.at = usage.CPU, time.Now()
	return n, err
}

const (
	awaitTimeout = 30 * time.Minute // for 10,000 managed resources on two cores that others use as well
	awaitPoll    = 200 * time.Millisecond
	// quietTime is longer than crossplane-runtime's first delay of a retry.
	quietTime = 3 * time.Second
)

func (c *cluster) await(ctx context.Context, what string, done func() (bool, error)) error {
	deadline := time.After(awaitTimeout)
	for {
		ended, err := done()
		if err == nil && c.provider != nil {
			err = c.provider.Err()
		}
		if ended || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return fmt.Errorf("%s: not within %s", what, awaitTimeout)
		case <-time.After(awaitPoll):
		}
	}
}

// quiet waits until the provider does nothing any more.
func (c *cluster) quiet(ctx context.Context) error {
	last, since := int64(-1), time.Now()
	return c.await(ctx, "provider to do nothing", func() (bool, error) {
		n, err := c.reconciles(ctx)
		if n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > quietTime, err
	})
}

func (c *cluster) in(namespace string) dynamic.ResourceInterface {
	return c.dynamic.Resource(provider.Resource).Namespace(namespace)
}

func (c *cluster) addNamespace(ctx context.Context, name string) error {
	_, err := c.core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

// manifest is a managed resource. An empty external name is none.
func manifest(name, externalName string, size int64) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"forProvider": map[string]any{"name": name, "size": size}}}}
	o.SetGroupVersionKind(provider.Kind)
	o.SetName(name)
	if externalName != "" {
		o.SetAnnotations(map[string]string{annotationName: externalName})
	}
	return o
}

// each reads all managed resources of a namespace, page by page, until one does not fit.
func (c *cluster) each(ctx context.Context, namespace string, fits func(*unstructured.Unstructured) bool) (n int, all bool, err error) {
	next := ""
	for {
		list, err := c.in(namespace).List(ctx, metav1.ListOptions{Limit: pageObjects, Continue: next})
		if err != nil {
			return n, false, err
		}
		for i := range list.Items {
			if !fits(&list.Items[i]) {
				return n, false, nil
			}
			n++
		}
		if next = list.GetContinue(); next == "" {
			return n, true, nil
		}
	}
}

// awaitEach waits until all managed resources of a namespace fit. A list that fails is sent again: its page may have expired, and a
// connection that an overloaded machine loses must not end the measurement.
func (c *cluster) awaitEach(ctx context.Context, what, namespace string, want int, fits func(*unstructured.Unstructured) bool) error {
	var last error
	err := c.await(ctx, what, func() (bool, error) {
		n, all, err := c.each(ctx, namespace, fits)
		last = err
		return err == nil && all && n == want, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

func identity(o *unstructured.Unstructured) string {
	id, _, _ := unstructured.NestedString(o.Object, "status", "atProvider", "id")
	return id
}

func ready(o *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	isTrue := map[any]bool{}
	for _, one := range conditions {
		if c, ok := one.(map[string]any); ok && c["status"] == "True" {
			isTrue[c["type"]] = true
		}
	}
	return isTrue["Ready"] && isTrue["Synced"] && identity(o) != ""
}
