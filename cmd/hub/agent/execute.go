package agent

import (
	"context"

	"github.com/godwit-dev/godwit/cmd/hub"
)

// run executes the stored command of a migration.
func (a *Agent) run(ctx context.Context, m *migration) {
	if m.get().task.finished() { // an execution has taken it over meanwhile
		a.answer(ctx, m)
		return
	}
	w := a.newWork(m)
	switch w.task.Role {
	case hub.Source:
		w.passOf = func(action hub.Action) (pass, bool) {
			if action == hub.SendResources {
				return w.sendResources(nil), true
			}
			return w.sourcePass(action)
		}
	default:
		end := func() {}
		defer func() { end() }()
		w.passOf = func(action hub.Action) (p pass, ok bool) {
			if action == hub.ReceiveResources {
				p, end = w.receiveResources(ctx)
				return p, true
			}
			return w.targetPass(action)
		}
	}
	w.execute(ctx)
}
