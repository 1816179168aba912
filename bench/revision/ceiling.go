package main

import (
	"context"
	"encoding/json"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/revision/decision"
)

// speed is the speed and the cost with which one client upgrades all VirtualMachines.
type speed struct {
	VMsPerSecond float64 `json:"vmsPerSecond"`
	// CPUPerVM is the CPU time that etcd, the API server, and the client use together for one VirtualMachine, in milliseconds. It
	// depends less on other processes of the machine than the speed.
	CPUPerVM float64 `json:"cpuMillisecondsPerVM"`
}

func speedOf(vms int, c frame.Cost) speed {
	return speed{VMsPerSecond: float64(vms) / c.Took.Seconds(), CPUPerVM: 1000 * (c.ServersCPU + c.CPU) / float64(vms)}
}

// writes are the requests of the ceiling for one VirtualMachine, ready to be sent.
type writes struct {
	replacements [2][]byte
	// retained are the old revisions with the time since which no object refers to them; nil if that is not written.
	retained [2][]byte
}

// upgrade is the ceiling: a client that knows beforehand what to write. It sends the smallest
// number of requests after which the cluster has the same objects as after a run of godwit. It
// creates both replacements, and repoints the spec and the status. With retained, it also writes
// to both old revisions the time since which no object refers to them. It reads nothing, and
// works on width VirtualMachines at once.
func (f *fleet) upgrade(ctx context.Context, width int, retained bool) (speed, error) {
	all, err := f.prepare(ctx, retained)
	if err != nil {
		return speed{}, err
	}
	cost, err := frame.MeasureWork(func() error {
		return frame.Each(f.vms, width, func(m *vm) error { return f.send(ctx, m, all[m]) })
	})
	if err != nil {
		return speed{}, err
	}
	if retained {
		err = f.mustBeRetained(ctx)
	} else {
		_, err = f.mustBeUpgraded(ctx)
	}
	return speedOf(len(f.vms), cost), err
}

// prepare encodes the requests.
func (f *fleet) prepare(ctx context.Context, retained bool) (map[*vm]writes, error) {
	all := map[*vm]writes{}
	old, err := f.allRevisions(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range f.vms {
		var w writes
		for i, r := range m.roles {
			if w.replacements[i], err = json.Marshal(r.replacement); err != nil {
				return nil, err
			}
			if !retained {
				continue
			}
			if w.retained[i], err = encodeRetained(old[m.namespace][r.source], r.replacement.Name); err != nil {
				return nil, err
			}
		}
		all[m] = w
	}
	return all, nil
}

// encodeRetained encodes an old revision without a resourceVersion, so that the API server
// replaces it without a conflict. It uses protobuf, which the API server decodes fastest.
func encodeRetained(old *appsv1.ControllerRevision, replacement string) ([]byte, error) {
	r := old.DeepCopy()
	r.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ControllerRevision"))
	r.ResourceVersion, r.ManagedFields = "", nil
	r.Annotations = map[string]string{
		decision.UnreferencedAnnotation: time.Now().UTC().Format(time.RFC3339),
		decision.ToAnnotation:           replacement,
	}
	return runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), r)
}

// send sends the requests of one VirtualMachine in an order in which each reference names an
// existing revision at any time.
func (f *fleet) send(ctx context.Context, m *vm, w writes) error {
	for _, body := range w.replacements {
		if err := send(ctx, f.plain.Post().AbsPath(revisions(m.namespace)...).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body)); err != nil {
			return err
		}
	}
	if err := f.repoint(ctx, m, func(r role) string { return r.replacement.Name }); err != nil {
		return err
	}
	for i, r := range m.roles {
		if w.retained[i] == nil {
			continue
		}
		put := f.plain.Put().AbsPath(revisions(m.namespace, r.source)...).SetHeader("Content-Type", runtime.ContentTypeProtobuf)
		if err := send(ctx, put.Body(w.retained[i])); err != nil {
			return err
		}
	}
	return nil
}
