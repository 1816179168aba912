package rescue

import (
	"errors"
	"testing"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/report/crdreport"
	"github.com/godwit-dev/godwit/crdmigrator/rescue"
	"github.com/godwit-dev/godwit/internal/storageversion"
)

func TestResultOf(t *testing.T) {
	ready := rescue.Plan{State: rescue.Ready}
	cases := map[string]struct {
		reason string
		plan   rescue.Plan
		err    error
		result crdreport.Result
		code   cli.Code
	}{
		"rescued":     {"nothing is left", ready, nil, crdreport.Rescued, cli.OK},
		"healthy":     {"there was nothing to do", rescue.Plan{State: rescue.Healthy}, nil, crdreport.Healthy, cli.OK},
		"blocked":     {"nothing was written", rescue.Plan{State: rescue.Blocked, Blockers: []godwit.Blocker{{}}}, &rescue.BlockedError{}, crdreport.Blocked, cli.Refused},
		"refused":     {"the CRD is as before", ready, &rescue.BlockedError{}, crdreport.Blocked, cli.Refused},
		"reverted":    {"the CRD is not as before", ready, &rescue.BlockedError{Begun: true}, crdreport.Partial, cli.Partial},
		"incomplete":  {"some objects are not rewritten", ready, errors.Join(nil, rescue.ErrIncomplete), crdreport.Partial, cli.Partial},
		"no rewrite":  {"the versions were added before", ready, &storageversion.BlockedError{}, crdreport.Partial, cli.Partial},
		"any failure": {"the command could not do its work", ready, errors.New("no answer"), crdreport.Failed, cli.Error},
	}
	for name, c := range cases {
		if result, code := resultOf(c.plan, c.err); result != c.result || code != c.code {
			t.Errorf("%s: %s: %s, exit code %d; want %s, %d", name, c.reason, result, code, c.result, c.code)
		}
	}
}
