package plan

import (
	"context"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
)

// planOptions are the flags of the command.
type planOptions struct {
	*frame.App
	contextFlags
	output  outputFlags
	limit   frame.DurationFlag
	watches bool
	depth   depth
}

// read reads all clusters.
func (o *planOptions) read(ctx context.Context, apps []*frame.App) planreport.PlanList {
	began := o.Clock.Now()
	if o.watches { // every 10 s
		o.depth = depth{}
	}
	rows, same := onceEach(gather(ctx, apps, time.Duration(o.limit), o.depth))
	return planreport.NewPlanList(rows, frame.Build().Version, began, append(same, o.notes()...)...)
}

// empty returns the document of a failed command.
func (o *planOptions) empty() planreport.PlanList {
	return planreport.NewPlanList(nil, frame.Build().Version, o.Clock.Now())
}

// notes returns the notes about facts that no row shows.
func (o *planOptions) notes() []string {
	hint := o.Hint
	if len(o.names) > 0 {
		hint = func(words string) string { return o.Program + " " + words + " --context=CONTEXT" }
	}
	notes := []string{"Built-in resources have no row: no API shows at which version, or with which key, their objects are stored. After a new release of Kubernetes or a new encryption key: " + hint("resource plan --all")}
	if !o.depth.references {
		notes = append(notes, "References to versions that CRDs do not serve were not looked for: "+hint("crd doctor"))
	}
	if !o.depth.preflight {
		notes = append(notes, "Admission was not asked whether it lets the writes of a run pass, and what a run would drop was not looked for: "+hint("crd plan"))
	}
	return notes
}
