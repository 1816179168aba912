package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/bench/internal/frame"
)

// observations is the number of observations of an unchanged object. In a real cluster, there are thousands for each change.
const observations = 5

// Sizes of a database, before and after the update.
const (
	createdSize = 1
	updatedSize = 2
)

// Phases of a life.
const (
	created  = "creation"
	observed = "observation"
	updated  = "update"
	deleted  = "deletion"
)

var phases = []string{created, observed, updated, deleted}

// cost is the cost of a phase for a controller, per object. In the phase of observations, it is per observation.
type cost struct {
	API        float64            `json:"apiRequests"`
	ByVerb     map[string]float64 `json:"apiRequestsByVerb"`
	External   float64            `json:"externalRequests"`
	Reconciles float64            `json:"reconciles"`
	CPU        float64            `json:"cpuMilliseconds"`
	Seconds    float64            `json:"seconds"`
}

func (c cost) requests() float64 { return c.API + c.External }

// life is the cost of an object's life for a controller, by phase.
type life map[string]cost

func (l life) requests() (sum float64) {
	for _, c := range l {
		sum += c.requests()
	}
	return sum
}

// String has the requests of all phases and of each.
func (l life) String() string {
	parts := make([]string, len(phases))
	for i, phase := range phases {
		parts[i] = fmt.Sprintf("%s %.2f API %v, %.2f external", phase, l[phase].API, l[phase].ByVerb, l[phase].External)
	}
	return fmt.Sprintf("%.2f requests in a life: %s", l.requests(), strings.Join(parts, "; "))
}

// comparison compares the lives under both controllers.
type comparison struct {
	Objects int `json:"objects"`
	// Ours and ByHand are medians.
	Ours   life `json:"crossplane"`
	ByHand life `json:"byHand"`
	// RequestsRatio compares all requests in a life with one observation. RequestsRatioAtRest compares the requests of one
	// observation. An update under package crossplane has one request more: the event about the difference, which the other
	// controller does not report.
	RequestsRatio       float64 `json:"requestsRatio"`
	RequestsRatioAtRest float64 `json:"requestsRatioAtRest"`
	// CPURatioAtRest compares the CPU time of an observation.
	CPURatioAtRest float64 `json:"cpuRatioAtRest"`
	Rounds         []round `json:"rounds"`
}

// round is one turn.
type round struct {
	Ours   life `json:"crossplane"`
	ByHand life `json:"byHand"`
}

// compare lets both controllers take turns.
func (c *cluster) compare(ctx context.Context, objects, rounds int) (comparison, error) {
	r := comparison{Objects: objects}
	for i := range rounds {
		var one round
		turns := []frame.Turn{
			func(ctx context.Context) (_ string, err error) {
				one.ByHand, err = c.measureLife(ctx, fmt.Sprintf("by-hand-%d", i), true, objects)
				return "by hand: " + one.ByHand.String(), err
			},
			func(ctx context.Context) (_ string, err error) {
				one.Ours, err = c.measureLife(ctx, fmt.Sprintf("crossplane-%d", i), false, objects)
				return "package crossplane: " + one.Ours.String(), err
			},
		}
		if err := frame.TakeTurns(ctx, i, func(context.Context) error { return nil }, turns); err != nil {
			return r, err
		}
		r.Rounds = append(r.Rounds, one)
	}
	r.rate()
	return r, nil
}

// rate computes the medians and the ratios.
func (r *comparison) rate() {
	r.Ours, r.ByHand = medians(r.Rounds, func(o round) life { return o.Ours }), medians(r.Rounds, func(o round) life { return o.ByHand })
	r.RequestsRatio = frame.Ratio(r.Ours.requests(), r.ByHand.requests())
	r.RequestsRatioAtRest = frame.Ratio(r.Ours[observed].requests(), r.ByHand[observed].requests())
	r.CPURatioAtRest = frame.Ratio(r.Ours[observed].CPU, r.ByHand[observed].CPU)
}

func medians(rounds []round, of func(round) life) life {
	l := life{}
	for _, phase := range phases {
		median := func(value func(cost) float64) float64 {
			return frame.Median(rounds, func(r round) float64 { return value(of(r)[phase]) })
		}
		c := cost{
			API: median(func(c cost) float64 { return c.API }), External: median(func(c cost) float64 { return c.External }),
			Reconciles: median(func(c cost) float64 { return c.Reconciles }), CPU: median(func(c cost) float64 { return c.CPU }),
			Seconds: median(func(c cost) float64 { return c.Seconds }), ByVerb: map[string]float64{},
		}
		for _, r := range rounds {
			for verb := range of(r)[phase].ByVerb {
				c.ByVerb[verb] = median(func(c cost) float64 { return c.ByVerb[verb] })
			}
		}
		l[phase] = c
	}
	return l
}

// measureLife starts a controller, and brings objects through all phases under it.
func (c *cluster) measureLife(ctx context.Context, namespace string, byHand bool, objects int) (l life, err error) {
	if err := c.CreateNamespace(ctx, namespace); err != nil {
		return nil, err
	}
	if err := c.startProvider(ctx, c.Kubeconfig, byHand); err != nil {
		return nil, err
	}
	l = life{}
	if err := c.awaitQuiet(ctx); err != nil {
		return nil, err
	}
	for _, phase := range phases {
		if l[phase], err = c.measurePhase(ctx, phase, namespace, frame.Names(namespace, objects)); err != nil {
			return nil, fmt.Errorf("%s in %s: %w", phase, namespace, err)
		}
	}
	return l, c.stopProvider(ctx)
}

// measurePhase measures one phase of all objects. The controller does nothing before it, and nothing after it.
func (c *cluster) measurePhase(ctx context.Context, phase, namespace string, names []string) (cost, error) {
	before, err := c.count(ctx)
	if err != nil {
		return cost{}, err
	}
	times := 1
	if phase == observed {
		times = observations
	}
	for i := range times {
		if err := c.change(ctx, phase, namespace, names, i); err != nil {
			return cost{}, err
		}
	}
	if err := c.awaitQuiet(ctx); err != nil {
		return cost{}, err
	}
	after, err := c.count(ctx)
	if err != nil {
		return cost{}, err
	}
	return costOf(before, after, len(names)*times), c.check(ctx, phase, names)
}

func costOf(before, after count, n int) cost {
	per := func(of int64) float64 { return float64(of) / float64(n) }
	c := cost{
		External: per(after.external.Since(before.external).Total()), Reconciles: per(after.reconciles - before.reconciles),
		CPU: 1000 * (after.cpu - before.cpu) / float64(n), Seconds: after.time.Sub(before.time).Seconds(), ByVerb: map[string]float64{},
	}
	for verb, of := range after.api.Since(before.api) {
		c.ByVerb[verb] = per(of)
		c.API += per(of)
	}
	return c
}

// change brings all objects through a phase, and returns when the controller has reconciled each.
func (c *cluster) change(ctx context.Context, phase, namespace string, names []string, turn int) error {
	objects := c.in(namespace)
	patch := func(fields map[string]any) error {
		body, err := json.Marshal(fields)
		if err != nil {
			return err
		}
		return frame.Each(names, fillers, func(name string) error {
			_, err := objects.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
			return err
		})
	}
	start, err := c.reconciles(ctx)
	if err != nil {
		return err
	}
	left := len(names)
	switch phase {
	case created:
		err = frame.Each(names, fillers, func(name string) error {
			_, err := objects.Create(ctx, manifest(name, "", createdSize), metav1.CreateOptions{})
			return err
		})
	case observed:
		// A change of any annotation makes the controller observe.
		err = patch(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"example.org/turn": strconv.Itoa(turn)}}})
	case updated:
		err = patch(map[string]any{"spec": map[string]any{"forProvider": map[string]any{"size": updatedSize}}})
	case deleted:
		err, left = frame.Each(names, fillers, func(name string) error { return objects.Delete(ctx, name, metav1.DeleteOptions{}) }), 0
	}
	if err != nil {
		return err
	}
	err = c.await(ctx, "reconciliations", func() (bool, error) {
		n, err := c.reconciles(ctx)
		return n >= start+int64(len(names)), err
	})
	if err != nil {
		return err
	}
	return c.awaitEach(ctx, phase, namespace, left, ready)
}

// check fails unless the job service has the databases that the phase should leave, so that only completed work counts.
func (c *cluster) check(ctx context.Context, phase string, names []string) error {
	sizes := map[string]int{}
	for d, err := range c.client.All(ctx) {
		if err != nil {
			return err
		}
		sizes[d.Name] = d.Size
	}
	want := map[string]int{created: createdSize, observed: createdSize, updated: updatedSize}[phase] // 0 after the deletion
	for _, name := range names {
		if sizes[name] != want {
			return fmt.Errorf("database %s has size %d in the job service, want %d", name, sizes[name], want)
		}
	}
	return nil
}
