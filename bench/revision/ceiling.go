package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/godwit-dev/godwit/bench/internal/measure"
)

// upgrade is the ceiling: the least that leads all references of a machine to new
// revisions, which is to create both and to write its spec and its status. It looks at
// nothing, notes nothing on the old revisions, and does width machines at a time. It
// returns how many it does in a second.
func (f *fleet) upgrade(ctx context.Context, width int) (float64, error) {
	bodies := map[string][2][]byte{}
	for _, m := range f.machines {
		var both [2][]byte
		for i, r := range m.roles {
			var err error
			if both[i], err = json.Marshal(r.successor); err != nil {
				return 0, err
			}
		}
		bodies[m.namespace+"/"+m.name] = both
	}
	begun := time.Now()
	err := measure.Each(f.machines, width, func(m *machine) error {
		for _, body := range bodies[m.namespace+"/"+m.name] {
			if err := send(ctx, f.plain.Post().AbsPath(revisions(m.namespace)...).SetHeader("Content-Type", "application/json").Body(body)); err != nil {
				return err
			}
		}
		return f.point(ctx, m, func(r role) string { return r.successor.Name })
	})
	took := time.Since(begun)
	if err != nil {
		return 0, err
	}
	_, err = f.mustBeUpgraded(ctx)
	return float64(len(f.machines)) / took.Seconds(), err
}
