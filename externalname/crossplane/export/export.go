package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Exporter writes the manifests of kinds.
type Exporter struct {
	// Kinds are exported in this order. A kind comes after those that its manifests refer to.
	Kinds []Kind
	// Out gets YAML and nothing else.
	Out io.Writer
	// Log gets progress and warnings.
	Log io.Writer
	// Check returns an error for a manifest that must not be exported: see [DryRun]. If nil, only the author's types
	// check the manifests.
	Check func(ctx context.Context, manifest []byte) error
}

// Run runs the export. An error means that the export did not reach its end; [CodeOf] returns its exit code. Otherwise
// [Report.Code] returns the exit code, and the report has the resources that were not exported.
func (e Exporter) Run(ctx context.Context) (Report, error) {
	var report Report
	names := map[schema.GroupKind]map[string]string{}
	exported := func(kind schema.GroupKind, externalName string) (string, bool) {
		name, ok := names[kind][externalName]
		return name, ok
	}
	for _, kind := range e.Kinds {
		k := KindReport{Kind: kind.gvk()}
		manifests := kind.read(ctx, &k)
		if ctx.Err() != nil {
			return report, fmt.Errorf("export %s: %w", k.Kind.Kind, ctx.Err())
		}
		written, err := e.write(ctx, manifests, exported, &k)
		if err != nil {
			return report, err
		}
		names[k.Kind.GroupKind()] = written
		report.Kinds = append(report.Kinds, k)
		e.log(k)
	}
	return report, nil
}

// write writes the manifests of a kind, and returns the names of those that were written.
func (e Exporter) write(ctx context.Context, manifests map[string]manifest, exported Lookup, k *KindReport) (map[string]string, error) {
	proposed := map[string]string{}
	for external, m := range manifests {
		proposed[external] = m.proposed
	}
	names, written := uniqueNames(proposed), map[string]string{}
	for _, external := range slices.Sorted(maps.Keys(manifests)) {
		document, err := manifests[external].render(names[external], exported)
		if err == nil && e.Check != nil {
			err = e.Check(ctx, document)
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("export %s: %w", k.Kind.Kind, ctx.Err())
		}
		if err != nil {
			k.Skipped = append(k.Skipped, Skipped{Name: external, Err: err})
			continue
		}
		if _, err := fmt.Fprintf(e.Out, "---\n%s", document); err != nil {
			return nil, fmt.Errorf("write the manifests: %w", err)
		}
		written[external] = names[external]
		k.Exported++
	}
	return written, nil
}

// log quotes text of the external system, which may contain control characters.
func (e Exporter) log(k KindReport) {
	fmt.Fprintf(e.Log, "%s: %d listed, %d exported\n", k.Kind.Kind, k.Listed, k.Exported)
	if k.Gone > 0 {
		fmt.Fprintf(e.Log, "%s: %d were deleted during the export\n", k.Kind.Kind, k.Gone)
	}
	for _, s := range k.Skipped {
		fmt.Fprintf(e.Log, "warning: %s %q is not exported: %q\n", k.Kind.Kind, s.Name, s.Err.Error())
	}
	if k.Incomplete != nil {
		fmt.Fprintf(e.Log, "warning: %s: not all external resources are known: %q\n", k.Kind.Kind, k.Incomplete.Error())
	}
}

// CodeOf returns the exit code for what [Exporter.Run] returns.
func CodeOf(report Report, err error) Code {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return TimedOut
	case errors.Is(err, context.Canceled):
		return Interrupted
	case err != nil:
		return Error
	}
	return report.Code()
}
