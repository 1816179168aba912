package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

// Facts are what is read of a cluster.
type Facts struct {
	Managed []Fact
	// Now is the time of the API server.
	Now time.Time
	// Unread are the resources that could not be read. Findings about them, and about names that they share, are missing.
	Unread []Unread
}

// Unread is a resource that could not be read.
type Unread struct {
	Resource schema.GroupResource
	Err      error
}

// Reader reads facts.
type Reader struct{ client *kube.Client }

// NewReader returns a reader of a cluster. It sends no request. The limiter paces the requests.
func NewReader(cfg *rest.Config, limiter *walk.Limiter) (*Reader, error) {
	client, err := kube.NewClient(cfg, limiter, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	return &Reader{client}, nil
}

// kindsAtOnce bounds the pages of whole objects in memory.
const kindsAtOnce = 4

// Events are the resource of the events of creations.
var Events = schema.GroupVersionResource{Version: "v1", Resource: "events"}

// reasonCreated is the reason of crossplane-runtime's event of a creation.
const reasonCreated = "CreatedExternalResource"

// Read reads the managed resources of some kinds, and the events of their creations, page by page. It keeps what [Decide] needs. It
// returns an error only if ctx has ended.
func (r *Reader) Read(ctx context.Context, kinds []fleet.Kind) (Facts, error) {
	all := make([]Facts, len(kinds))
	next := make(chan struct{}, kindsAtOnce)
	var reads sync.WaitGroup
	for i, kind := range kinds {
		next <- struct{}{}
		reads.Go(func() {
			defer func() { <-next }()
			all[i] = r.readKind(ctx, kind)
		})
	}
	reads.Wait()
	var facts Facts
	for _, one := range all {
		facts.Managed, facts.Unread = append(facts.Managed, one.Managed...), append(facts.Unread, one.Unread...)
	}
	if len(facts.Managed) > 0 {
		created, err := r.creations(ctx)
		if err != nil {
			facts.Unread = append(facts.Unread, Unread{Events.GroupResource(), err})
		}
		for i := range facts.Managed {
			facts.Managed[i].Creations = created[facts.Managed[i].UID]
		}
	}
	facts.Now = r.client.Clock.Now()
	return facts, ctx.Err()
}

// readKind reads the managed resources of a kind. A list that begins again shows an object twice.
func (r *Reader) readKind(ctx context.Context, kind fleet.Kind) (facts Facts) {
	known := map[types.UID]bool{}
	for page, err := range r.client.WholeObjects(ctx, kube.Scope{Resource: kind.Resource}, walk.ListOptions{}) {
		if err != nil {
			facts.Unread = append(facts.Unread, Unread{kind.Resource.GroupResource(), err})
			return facts
		}
		for _, o := range page.Items {
			if known[o.GetUID()] || !fleet.Managed(o) {
				continue
			}
			known[o.GetUID()] = true
			facts.Managed = append(facts.Managed, FactOf(kind, o))
		}
	}
	return facts
}

// creations counts the events of creations by the UID of their managed resource. An API server keeps events for an hour, unless it is
// configured otherwise.
func (r *Reader) creations(ctx context.Context) (map[types.UID]Creations, error) {
	created, known := map[types.UID]Creations{}, map[types.UID]bool{}
	for page, err := range walk.List(ctx, r.fetchCreations, walk.ListOptions{}) {
		if err != nil {
			return created, err
		}
		for i := range page.Items {
			if event := &page.Items[i]; !known[event.UID] {
				known[event.UID] = true
				created[event.InvolvedObject.UID] = created[event.InvolvedObject.UID].with(event)
			}
		}
	}
	return created, nil
}

// fetchCreations lists one page of the events of creations.
func (r *Reader) fetchCreations(ctx context.Context, limit int64, token string) (walk.Page[corev1.Event], string, error) {
	req := r.client.Get().AbsPath("api", "v1", Events.Resource).Param("fieldSelector", "reason="+reasonCreated).
		Param("limit", strconv.FormatInt(limit, 10)).SetHeader("Accept", runtime.ContentTypeJSON)
	if token != "" {
		req.Param("continue", token)
	}
	var list corev1.EventList
	text, err := kube.Body(kube.Do(ctx, req))
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return walk.Page[corev1.Event]{}, "", fmt.Errorf("list events: %w", err)
	}
	return walk.Page[corev1.Event]{Items: list.Items, ResourceVersion: list.ResourceVersion, Remaining: kube.UnknownCount}, list.Continue, nil
}

// with adds an event. A recorder counts events that are the same.
func (c Creations) with(event *corev1.Event) Creations {
	times, first := max(1, event.Count), event.FirstTimestamp.Time
	if event.Series != nil {
		times = max(times, event.Series.Count)
	}
	for _, at := range []time.Time{event.EventTime.Time, event.CreationTimestamp.Time} {
		if first.IsZero() {
			first = at
		}
	}
	c.Count += int64(times)
	if c.First.IsZero() || first.Before(c.First) {
		c.First = first
	}
	return c
}
