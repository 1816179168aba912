package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/test/jobservice"
	"github.com/godwit-dev/godwit/test/jobservice/provider"
)

// databaseSize is the size of each database of a fleet.
const databaseSize = 1

// renaming is `godwit externalname run` over some managed resources, with its start, its plan and its report.
type renaming struct {
	Objects           int           `json:"objects"`
	Batch             int           `json:"batch"`
	Seconds           float64       `json:"seconds"`
	Requests          account.Count `json:"requests"`
	RequestsPerObject float64       `json:"requestsPerObject"`
	CPU               float64       `json:"cpuMillisecondsPerObject"`
	PeakRSS           int64         `json:"peakRSSBytes"`
	// ProviderCPU is the CPU time of the provider meanwhile, and Reconciles counts its reconciliations.
	ProviderCPU float64 `json:"providerCPUMillisecondsPerObject"`
	Reconciles  float64 `json:"reconcilesPerObject"`
}

// renameFleets measures one fleet after the other, each in a namespace of its own.
func (c *cluster) renameFleets(ctx context.Context, sizes []int, batch int) (all []renaming, err error) {
	if err := c.startProvider(ctx, c.kubeconfig, false); err != nil {
		return nil, err
	}
	for _, n := range sizes {
		f := &fleet{cluster: c, namespace: fmt.Sprintf("fleet-%d", n), identities: map[string]string{}}
		if err := f.grow(ctx, n); err != nil {
			return nil, err
		}
		r, err := f.rename(ctx, batch)
		if err != nil {
			return nil, err
		}
		frame.Logf("renaming of %d: %.0f s, %.2f requests for each, %.1f MiB", n, r.Seconds, r.RequestsPerObject, frame.MiB(r.PeakRSS))
		all = append(all, r)
	}
	return all, c.stopProvider(ctx)
}

// fleet has managed resources with external names in upper case, in one namespace.
type fleet struct {
	*cluster
	namespace string
	// identities has the GUIDs of the job service, by name.
	identities map[string]string
}

// grow creates databases and managed resources for them, and returns when the provider has observed them.
func (f *fleet) grow(ctx context.Context, n int) error {
	frame.Logf("creating %d managed resources", n)
	if err := f.CreateNamespace(ctx, f.namespace); err != nil {
		return err
	}
	names := frame.Names(f.namespace, n)
	ids := make([]string, n)
	err := frame.Times(n, fillers, func(i int) error {
		operation, err := f.client.Create(ctx, jobservice.Database{Name: names[i], Size: databaseSize})
		if err != nil {
			return err
		}
		o, err := f.client.Operation(ctx, operation)
		if err != nil || o.State != jobservice.Succeeded {
			return errors.Join(fmt.Errorf("the operation for database %s is %q", names[i], o.State), err)
		}
		ids[i] = o.Database
		_, err = f.in(f.namespace).Create(ctx, manifest(names[i], strings.ToUpper(o.Database), databaseSize), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	for i, name := range names {
		f.identities[name] = ids[i]
	}
	if err := f.awaitEach(ctx, "observation", f.namespace, n, ready); err != nil {
		return err
	}
	return f.awaitQuiet(ctx)
}

// rename runs the command, and fails unless it has renamed the fleet.
func (f *fleet) rename(ctx context.Context, batch int) (r renaming, err error) {
	n := len(f.identities)
	before, err := f.count(ctx)
	if err != nil {
		return r, err
	}
	var report report
	cost, err := f.Run(ctx, frame.ExitDone, &report, "externalname", "run", "--resource="+provider.Resource.GroupResource().String(),
		"--name=name.lowerAscii()", "--namespace="+f.namespace, "--batch="+strconv.Itoa(batch), "--yes")
	if err != nil {
		return r, err
	}
	after, err := f.count(ctx)
	if err != nil {
		return r, err
	}
	if err := f.check(ctx, report, after.external.Since(before.external)); err != nil {
		return r, err
	}
	return renaming{
		Objects: n, Batch: batch, Seconds: cost.Took.Seconds(), CPU: 1000 * cost.CPU / float64(n), PeakRSS: cost.PeakRSS,
		Requests: cost.Requests, RequestsPerObject: float64(cost.Requests.Total()) / float64(n),
		ProviderCPU: 1000 * (after.cpu - before.cpu) / float64(n), Reconciles: float64(after.reconciles-before.reconciles) / float64(n),
	}, nil
}

// report is the part of the command's JSON that shows whether it has renamed the fleet.
type report struct {
	Items []struct {
		Phase string `json:"phase"`
	} `json:"items"`
}

// check fails unless each managed resource has its new name and shows the same database, and the provider has only read.
func (f *fleet) check(ctx context.Context, report report, external account.Count) error {
	renamed := 0
	for _, i := range report.Items {
		if i.Phase == "Renamed" {
			renamed++
		}
	}
	same, _, err := f.each(ctx, f.namespace, func(o *unstructured.Unstructured) bool {
		id := f.identities[o.GetName()]
		return o.GetAnnotations()[annotationName] == id && identity(o) == id
	})
	if err != nil {
		return err
	}
	for pattern := range external {
		if !strings.HasPrefix(pattern, "GET ") {
			return fmt.Errorf("the provider has changed the job service: %v", external)
		}
	}
	if n := len(f.identities); renamed != n || same != n {
		return fmt.Errorf("godwit reports %d renamed, and %d have the new name and the identity from before, want %d of each", renamed, same, n)
	}
	return nil
}
