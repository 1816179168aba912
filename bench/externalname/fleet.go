package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/bench/internal/proc"
	"github.com/godwit-dev/godwit/test/jobservice"
	"github.com/godwit-dev/godwit/test/jobservice/provider"
)

// fewest managed resources have a report that is larger than what a pipe buffers: see proc.Ended.
const fewest = 200

// fleetSize is the size of each database of a fleet.
const fleetSize = 1

// renaming is `godwit externalname apply` over some managed resources, with its start, its plan and its report.
type renaming struct {
	Objects           int           `json:"objects"`
	Batch             int           `json:"batch"`
	Seconds           float64       `json:"seconds"`
	Requests          account.Count `json:"requests"`
	RequestsPerObject float64       `json:"requestsPerObject"`
	CPU               float64       `json:"cpuMillisecondsPerObject"`
	PeakRSS           int64         `json:"peakRSSBytes"`
	// ProviderCPU is what the provider has used meanwhile, and Reconciles how often it has reconciled.
	ProviderCPU float64 `json:"providerCPUMillisecondsPerObject"`
	Reconciles  float64 `json:"reconcilesPerObject"`
}

// renameFleets measures one fleet after the other, each in a namespace of its own.
func (c *cluster) renameFleets(ctx context.Context, sizes []int, batch int) (all []renaming, err error) {
	if err := c.startProvider(ctx, providerUser, false); err != nil {
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
		measure.Say("renaming of %d: %.0f s, %.2f requests for each, %.1f MiB", n, r.Seconds, r.RequestsPerObject, float64(r.PeakRSS)/(1<<20))
		all = append(all, r)
	}
	return all, c.stopProvider(ctx)
}

// fleet are managed resources with names in upper case, in one namespace.
type fleet struct {
	*cluster
	namespace string
	// identities are the GUIDs that the job service has made, by name.
	identities map[string]string
}

// grow creates databases and managed resources for them, and returns when the provider has observed them.
func (f *fleet) grow(ctx context.Context, n int) error {
	measure.Say("creating %d managed resources", n)
	if err := f.addNamespace(ctx, f.namespace); err != nil {
		return err
	}
	type made struct{ name, id string }
	all := make([]made, n)
	indices := make([]int, n)
	for i := range indices {
		indices[i] = i
	}
	err := measure.Each(indices, fillers, func(i int) error {
		name := fmt.Sprintf("%s-%06d", f.namespace, i)
		operation, err := f.client.Create(ctx, jobservice.Database{Name: name, Size: fleetSize})
		if err != nil {
			return err
		}
		o, err := f.client.Operation(ctx, operation)
		if err != nil || o.State != jobservice.Succeeded {
			return errors.Join(fmt.Errorf("the operation for database %s is %q", name, o.State), err)
		}
		all[i] = made{name, o.Database}
		_, err = f.in(f.namespace).Create(ctx, manifest(name, strings.ToUpper(o.Database), fleetSize), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	for _, one := range all {
		f.identities[one.name] = one.id
	}
	if err := f.awaitEach(ctx, "observation", f.namespace, n, ready); err != nil {
		return err
	}
	return f.quiet(ctx)
}

// rename runs the command as a user would, and makes sure that it has done its work.
func (f *fleet) rename(ctx context.Context, batch int) (r renaming, err error) {
	n := len(f.identities)
	before, err := f.count(ctx)
	if err != nil {
		return r, err
	}
	cmd := exec.CommandContext(ctx, f.binary, "externalname", "apply", "--resource="+provider.Resource.GroupResource().String(),
		"--name=name.lowerAscii()", "--namespace="+f.namespace, "--batch="+strconv.Itoa(batch), "--yes", "--output=json")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.kubeconfig(account.Godwit))
	ended, err := proc.Run(cmd)
	if err != nil {
		return r, err
	}
	if ended.Code != 0 {
		return r, fmt.Errorf("%s ended with %d\n%s%.2000s", cmd, ended.Code, ended.Stderr, ended.Stdout)
	}
	after, err := f.count(ctx)
	if err != nil {
		return r, err
	}
	if err := f.check(ctx, ended, after.external.Since(before.external)); err != nil {
		return r, err
	}
	r = renaming{
		Objects: n, Batch: batch, Seconds: ended.Took.Seconds(), CPU: 1000 * ended.CPU / float64(n), PeakRSS: ended.PeakRSS,
		Requests: after.api.Since(before.api), ProviderCPU: 1000 * (after.cpu - before.cpu) / float64(n),
		Reconciles: float64(after.reconciles-before.reconciles) / float64(n),
	}
	r.RequestsPerObject = float64(r.Requests.Total()) / float64(n)
	return r, nil
}

// check makes sure that each managed resource has its new name and shows the same database, and that the provider has only read.
func (f *fleet) check(ctx context.Context, ended proc.Ended, external account.Count) error {
	if ended.PeakRSS == 0 {
		return errors.New("the process had ended before its memory could be read")
	}
	var report struct {
		Items []struct {
			Phase string `json:"phase"`
		} `json:"items"`
	}
	if err := json.Unmarshal(ended.Stdout, &report); err != nil {
		return fmt.Errorf("read the report: %w", err)
	}
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
