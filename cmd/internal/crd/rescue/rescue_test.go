package rescue

import (
	"errors"
	"testing"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/crdmigrator/rescue"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

func TestResultOf(t *testing.T) {
	ready := rescue.Plan{State: rescue.Ready}
	cases := map[string]struct {
		reason string
		plan   rescue.Plan
		err    error
		result crdreport.Result
		code   frame.Code
	}{
		"rescued":     {"nothing is left", ready, nil, crdreport.Rescued, frame.OK},
		"healthy":     {"there was nothing to do", rescue.Plan{State: rescue.Healthy}, nil, crdreport.Healthy, frame.OK},
		"blocked":     {"nothing was written", rescue.Plan{State: rescue.Blocked, Blockers: []godwit.Finding{{}}}, &rescue.BlockedError{}, crdreport.Blocked, frame.Refused},
		"refused":     {"the CRD is as before", ready, &rescue.BlockedError{}, crdreport.Blocked, frame.Refused},
		"reverted":    {"the CRD is not as before", ready, &rescue.BlockedError{Begun: true}, crdreport.Partial, frame.Partial},
		"incomplete":  {"some objects are not rewritten", ready, errors.Join(nil, rescue.ErrIncomplete), crdreport.Partial, frame.Partial},
		"no rewrite":  {"the versions were added before", ready, &decision.BlockedError{}, crdreport.Partial, frame.Partial},
		"any failure": {"the command could not do its work", ready, errors.New("no answer"), crdreport.Failed, frame.Error},
	}
	for name, c := range cases {
		if result, code := resultOf(c.plan, c.err); result != c.result || code != c.code {
			t.Errorf("%s: %s: %s, exit code %d; want %s, %d", name, c.reason, result, code, c.result, c.code)
		}
	}
}
