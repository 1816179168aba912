package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/bench/internal/proc"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/jobservice"
	"github.com/godwit-dev/godwit/test/jobservice/provider"
	"github.com/godwit-dev/godwit/test/program"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// fillers prepare objects in parallel.
	fillers = 16
	// reconcilesPerSecond is more than the provider reaches on the machines that we know.
	reconcilesPerSecond = 1000
	// pollNever prevents observations without a change, so that the measurement causes all requests.
	pollNever = 24 * time.Hour
	// creationGrace is short, because the measurement deletes objects soon after their creation. During crossplane-runtime's default
	// of 30 s, both controllers would observe a deleted resource again and again.
	creationGrace = time.Second
	// pageObjects is kubectl's --chunk-size default.
	pageObjects = 500

	// providerUser is the user of the provider. It differs from godwit's, so that its requests do not count while godwit runs.
	providerUser = "provider"

	annotationName = "crossplane.io/external-name"
)

// cluster is a control plane with the CRD of databases, the job service, and the program of its provider.
type cluster struct {
	*frame.Cluster
	dynamic    dynamic.Interface
	service    *jobservice.Process
	client     jobservice.Client
	program    string // the provider's
	kubeconfig string // of providerUser
	provider   *provider.Process
	metrics    string // address at which the provider serves them
	log        *os.File
}

func startCluster(ctx context.Context, b *frame.Bench) (c *cluster, err error) {
	c = &cluster{}
	frame.Logf("compiling the provider")
	if c.program, err = program.JobProvider(ctx); err != nil {
		return nil, err
	}
	if c.Cluster, err = b.StartCluster(ctx, controlplane.Options{}); err != nil {
		return nil, err
	}
	crds, err := provider.CRDs()
	if err != nil {
		return nil, err
	}
	if err := controlplane.InstallCRDs(ctx, c.Config(), crds...); err != nil {
		return nil, err
	}
	if c.dynamic, err = dynamic.NewForConfig(c.Config()); err != nil {
		return nil, err
	}
	if _, c.kubeconfig, err = c.AddUser(ctx, providerUser); err != nil {
		return nil, err
	}
	if c.service, err = jobservice.Start(ctx); err != nil {
		return nil, err
	}
	b.Cleanup(c.service.Stop)
	c.client = jobservice.Client{URL: c.service.URL}
	if c.log, err = os.Create(filepath.Join(b.Dir, "provider.log")); err != nil {
		return nil, err
	}
	b.Cleanup(c.log.Close)
	b.Cleanup(func() error { return c.stopProvider(context.WithoutCancel(ctx)) })
	return c, nil
}

// startProvider starts a controller with the kubeconfig of a user, and returns when it serves metrics.
func (c *cluster) startProvider(ctx context.Context, kubeconfig string, byHand bool) (err error) {
	if c.metrics, err = controlplane.FreeAddress(); err != nil {
		return err
	}
	c.provider, err = provider.Start(provider.Options{
		Program: c.program, Kubeconfig: kubeconfig, Service: c.service.URL, ByHand: byHand,
		Poll: pollNever, Rate: reconcilesPerSecond, CreationGrace: creationGrace, Metrics: c.metrics, Log: c.log,
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

// reconciles returns how many reconciliations the provider has ended.
func (c *cluster) reconciles(ctx context.Context) (int64, error) {
	metrics, err := account.GetMetrics(ctx, c.metrics)
	return metrics.Sum("controller_runtime_reconcile_total"), err
}

// count has the requests of godwit's user, and the work of the provider so far.
type count struct {
	api        account.Count
	external   account.Count
	reconciles int64
	cpu        float64
	time       time.Time
}

func (c *cluster) count(ctx context.Context) (n count, err error) {
	if n.api, err = c.Requests.Read(ctx); err != nil {
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
	n.cpu, n.time = usage.CPU, time.Now()
	return n, err
}

const (
	awaitTimeout = 30 * time.Minute // for 10,000 managed resources on two cores that others use as well
	awaitPoll    = 200 * time.Millisecond
	// quietTime is longer than crossplane-runtime's first delay of a retry.
	quietTime = 3 * time.Second
)

// await polls until done returns true. It returns an error if the provider ends meanwhile.
func (c *cluster) await(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, awaitTimeout, fmt.Errorf("not within %s", awaitTimeout))
	defer cancel()
	for {
		ended, err := done()
		if err == nil && c.provider != nil {
			err = c.provider.Err()
		}
		if ended || err != nil {
			return err
		}
		if err := walk.Wait(ctx, awaitPoll); err != nil {
			return fmt.Errorf("wait for the %s: %w", what, err)
		}
	}
}

// awaitQuiet waits until the provider has no more work.
func (c *cluster) awaitQuiet(ctx context.Context) error {
	last, since := int64(-1), time.Now()
	return c.await(ctx, "provider to end its work", func() (bool, error) {
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

// manifest returns a managed resource. An empty externalName means none.
func manifest(name, externalName string, size int64) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"forProvider": map[string]any{"name": name, "size": size}}}}
	o.SetGroupVersionKind(provider.Kind)
	o.SetName(name)
	if externalName != "" {
		o.SetAnnotations(map[string]string{annotationName: externalName})
	}
	return o
}

// each reads all managed resources of a namespace, page by page, until one does not match.
func (c *cluster) each(ctx context.Context, namespace string, matches func(*unstructured.Unstructured) bool) (n int, all bool, err error) {
	next := ""
	for {
		list, err := c.in(namespace).List(ctx, metav1.ListOptions{Limit: pageObjects, Continue: next})
		if err != nil {
			return n, false, err
		}
		for i := range list.Items {
			if !matches(&list.Items[i]) {
				return n, false, nil
			}
			n++
		}
		if next = list.GetContinue(); next == "" {
			return n, true, nil
		}
	}
}

// awaitEach waits until all managed resources of a namespace match. A list that fails is sent again: its page may have expired, and a
// connection that an overloaded machine loses must not end the measurement.
func (c *cluster) awaitEach(ctx context.Context, what, namespace string, want int, matches func(*unstructured.Unstructured) bool) error {
	var last error
	err := c.await(ctx, what, func() (bool, error) {
		n, all, err := c.each(ctx, namespace, matches)
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
