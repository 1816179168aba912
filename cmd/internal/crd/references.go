package crd

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/ownerreference"
	"github.com/godwit-dev/godwit/walk"
)

// Values of --owner-references.
const (
	// referencesAuto repairs references to versions that are not served, if a selected CRD has such a version.
	referencesAuto = "Auto"
	// referencesAll repairs references to every version but the storage version.
	referencesAll = "All"
	// referencesNone repairs nothing.
	referencesNone = "None"
)

// referencesFlag is the flag --owner-references.
type referencesFlag struct{ frame.Choice }

func (f *referencesFlag) addTo(c *cobra.Command) {
	f.Choice = frame.Choice{Value: referencesAuto, Allowed: []string{referencesAuto, referencesAll, referencesNone}, Kind: "string"}
	f.Choice.AddTo(c, "owner-references", "", "which ownerReferences to repair; Auto: those that name a version which is not served, if one of the CRDs "+
		"has such a version; All: those that name another version than the storage version; None: none")
}

func (f *referencesFlag) scope() ownerreference.Scope {
	if f.Value == referencesAll {
		return ownerreference.StorageVersion
	}
	return ownerreference.ServedVersions
}

// scans reports whether a run reads the ownerReferences of the cluster.
func (f *referencesFlag) scans(findings []finding) bool {
	if f.Value == referencesNone {
		return false
	}
	return slices.ContainsFunc(findings, func(one finding) bool {
		return one.problem == nil && one.facts.CRD != nil && len(one.plan.HardBlockers()) == 0 &&
			(f.Value == referencesAll || kube.HasUnserved(one.facts.CRD))
	})
}

// sentence describes what a run does with ownerReferences. It is empty if the run reads none.
func (f *referencesFlag) sentence(findings []finding) string {
	if !f.scans(findings) {
		return ""
	}
	named := "versions\nwhich are not served"
	if f.scope() == ownerreference.StorageVersion {
		named = "another\nversion than the storage version"
	}
	return "The run also reads the metadata of all objects of the cluster, and repairs ownerReferences that name " + named + ".\n"
}

// references is the third phase of a run: it repairs the ownerReferences of all CRDs of the run after one scan of the cluster.
type references struct {
	*runner
	flag    referencesFlag
	scanner *ownerreference.Scanner
}

// repairReferences repairs ownerReferences and adds the outcome to ends. It skips a CRD whose run was blocked or failed.
func (r *runner) repairReferences(ctx context.Context, flag referencesFlag, findings []finding, ends []ending) {
	if !flag.scans(findings) {
		return
	}
	p := &references{runner: r, flag: flag}
	var owners []ownerreference.Owners
	at := map[string]int{}
	err := context.Cause(ctx)
	if err == nil {
		p.scanner, err = ownerreference.NewScanner(r.config, r.options.Limiter)
	}
	for i, f := range findings {
		end := &ends[i]
		if f.problem != nil || !slices.Contains([]crdreport.Result{crdreport.Succeeded, crdreport.NoChange, crdreport.Partial}, end.Result) {
			continue
		}
		at[f.name] = i
		if err == nil {
			var o ownerreference.Owners
			o, err = p.scanner.OwnersOf(ctx, f.name, flag.scope())
			owners = append(owners, o)
		}
	}
	if err == nil {
		err = p.scanAndRepair(ctx, owners, func(crd string) *ending { return &ends[at[crd]] })
	}
	if err != nil {
		for _, i := range at {
			p.fail(ctx, &ends[i], err)
		}
	}
}

func (p *references) scanAndRepair(ctx context.Context, owners []ownerreference.Owners, end func(crd string) *ending) error {
	finder := ownerreference.NewFinder(owners)
	show, done := ShowScan(p.board.console)
	scan, err := p.scanner.Each(ctx, finder.Visit, show)
	done()
	if err != nil {
		return err
	}
	if len(scan.Unread) > 0 {
		p.printUnread(scan.Unread)
	}
	for _, o := range owners {
		e := end(o.CRD)
		e.OwnerReferences.State = crdreport.ReferencesClean
		if len(scan.Unread) > 0 {
			e.OwnerReferences.State = crdreport.ReferencesUnknown
			if p.flag.Value == referencesAll {
				e.addFailure(godwit.Failure{Name: o.CRD, Finding: godwit.Finding{Reason: scan.Unread[0].Reason, Message: "ownerReferences: " + scan.Unread[0].Message}})
			}
		}
		if err := p.repair(ctx, o, finder.Found[o.CRD], e); err != nil {
			p.fail(ctx, e, err)
		}
	}
	return nil
}

// repair repairs the references to the objects of one CRD.
func (p *references) repair(ctx context.Context, o ownerreference.Owners, dependents []*ownerreference.Dependent, e *ending) error {
	if len(dependents) == 0 {
		return nil
	}
	existing, why, err := p.scanner.ReadOwners(ctx, o)
	if err != nil {
		return err
	}
	if why != nil {
		e.OwnerReferences.State, e.OwnerReferences.Left = crdreport.ReferencesUnknown, int64(len(dependents))
		e.addFailure(godwit.Failure{Name: o.CRD, Finding: godwit.Finding{Reason: why.Reason, Message: "ownerReferences: " + why.Message}})
		return nil
	}
	var repairable []*ownerreference.Dependent
	for _, d := range dependents {
		if len(o.Repairable(d, existing)) > 0 {
			repairable = append(repairable, d)
		}
	}
	e.OwnerReferences.Left = int64(len(dependents) - len(repairable))
	if e.OwnerReferences.Left > 0 {
		p.board.note(fmt.Sprintf("%s: the ownerReferences of %s were left, because no such owner exists or its storage version is not served; see: %s crd doctor %s",
			o.CRD, render.Count(e.OwnerReferences.Left, "object", "objects"), p.Purpose.Program, o.CRD))
	}
	if p.dryRun == frame.DryRunClient {
		e.OwnerReferences.Found = int64(len(repairable))
		e.finishReferences()
		return nil
	}
	repairer := &ownerreference.Repairer{Scanner: p.scanner, Owners: o, Existing: existing, DryRun: p.dryRun == frame.DryRunServer}
	done, err := repairer.Run(ctx, repairable, nil)
	e.addRepair(done)
	if slices.ContainsFunc(done.Failures, func(f godwit.Failure) bool { return render.IsForbidden(f.Reason) }) {
		p.printLacking(ctx, repairable)
	}
	return err
}

// printLacking prints the command that grants the permissions to repair dependents.
func (p *references) printLacking(ctx context.Context, dependents []*ownerreference.Dependent) {
	grant, user := p.Purpose, p.WhoAmI(ctx)
	grant.Scope = slices.Clone(grant.Scope)
	for _, d := range dependents {
		if flag := "--dependents=" + d.Resource.GroupResource().String(); !slices.Contains(grant.Scope, flag) {
			grant.Scope = append(grant.Scope, flag)
		}
	}
	p.board.note(fmt.Sprintf("? %s lacks permissions to repair ownerReferences; %s", user, grant.Remedy(user)))
}

// addRepair adds the outcome of the repair. It does not count a dependent that another client has repaired or deleted.
func (e *ending) addRepair(done walk.Report) {
	c := done.Counts
	e.OwnerReferences.Repaired, e.OwnerReferences.Found = c.Migrated, c.Skipped
	e.OwnerReferences.Failed = c.Failed + c.Deferred
	for _, f := range done.Failures {
		e.addFailure(f)
	}
	if c.Migrated > 0 && e.Result == crdreport.NoChange {
		e.Result = crdreport.Succeeded
	}
	e.finishReferences()
}

func (e *ending) finishReferences() {
	if r := &e.OwnerReferences; r.Left+r.Failed+r.Found > 0 {
		r.State = crdreport.ReferencesStale
	}
}

// addFailure adds a failure, which makes the run Partial.
func (e *ending) addFailure(f godwit.Failure) {
	e.Failures, e.Result = append(e.Failures, f), crdreport.Partial
}

// fail records an error that ended the repair of ownerReferences.
func (p *references) fail(ctx context.Context, e *ending, err error) {
	e.OwnerReferences.State = crdreport.ReferencesUnknown
	f := godwit.Failure{Name: e.Name, Finding: godwit.Finding{Reason: decision.ReasonFailed, Message: "ownerReferences: " + frame.OneLine(err)}}
	switch frame.ContextCode(ctx) {
	case frame.TimedOut:
		f.Reason, f.Message = render.ReasonTimedOut, "--timeout ended the run while it repaired ownerReferences"
	case frame.Interrupted:
		f.Reason, f.Message = render.ReasonInterrupted, "the run ended while it repaired ownerReferences"
	}
	e.addFailure(f)
}

// printUnread prints one line for all resources that were not read.
func (p *references) printUnread(unread []ownerreference.Unread) {
	p.board.note(fmt.Sprintf("? the ownerReferences of %s were not read, such as %s: %s; see: %s crd doctor",
		render.Count(int64(len(unread)), "resource", "resources"), unread[0].Resource, unread[0].Message, p.Purpose.Program))
}
