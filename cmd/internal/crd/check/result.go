package check

import (
	"io"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/crdmigrator/bridge"
	"github.com/godwit-dev/godwit/crdmigrator/doctor"
	"github.com/godwit-dev/godwit/crdmigrator/releasecheck"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

func (o *options) print(items []crdreport.Check) error {
	return frame.Write(o.Streams.Out, o.output, crdreport.CheckList(items), func(w io.Writer) error {
		switch o.output.Value {
		case frame.SARIF:
			return crdreport.WriteSARIF(w, items, frame.Build().Version, &releasecheck.Reasons, &decision.Reasons, &doctor.Reasons, &bridge.Reasons)
		case frame.JUnit:
			return crdreport.WriteJUnit(w, items)
		case frame.Markdown:
			return crdreport.WriteCheckPage(w, items)
		}
		return crdreport.WriteChecks(w, o.Style(o.Streams.Out, o.output), items)
	})
}

// exitCode returns the exit code of check. It ignores reasons that end with the steps, if the steps are written.
func (o *options) exitCode(all []release, written bool) frame.Code {
	code := frame.OK
	for _, r := range all {
		if o.steps != "" && r.steps.Result == bridge.Blocked {
			code = frame.Worst(code, frame.Refused)
		}
		for _, f := range r.check.Reasons {
			if written && r.steps.Ends(f.Reason) {
				continue
			}
			switch f.Result {
			case releasecheck.Refused, releasecheck.Unsafe:
				code = frame.Worst(code, frame.Refused)
			case releasecheck.Unknown:
				code = frame.Worst(code, frame.Pending)
			case releasecheck.Safe:
			}
		}
	}
	return code
}
