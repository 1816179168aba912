package crd

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/internal/storageversion"
)

// settleFlag is a duration. Its zero means no wait, and the zero of storageversion.Policy
// means the default.
type settleFlag time.Duration

var _ pflag.Value = new(settleFlag)

func (s *settleFlag) policy() time.Duration {
	if *s == 0 {
		return -1
	}
	return time.Duration(*s)
}

func (s *settleFlag) Set(text string) error {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return cli.ErrDuration
	case d < 0:
		return errors.New("it must be zero or more; 0s means no wait")
	}
	*s = settleFlag(d)
	return nil
}

func (s *settleFlag) Type() string { return "duration" }

func (s *settleFlag) String() string { return fmt.Sprintf("%gs", time.Duration(*s).Seconds()) }

// policyFlags are the flags of storageversion.Policy.
type policyFlags struct {
	settle            settleFlag
	acceptStaleLeases bool
	acceptDenials     bool
}

func (p *policyFlags) addTo(flags *pflag.FlagSet) {
	p.settle = settleFlag(storageversion.DefaultSettle)
	flags.Var(&p.settle, "settle", "time to wait after a change of the storage version before the first write; "+
		"0s: do not wait; an API server may then write objects back at the old version")
	flags.BoolVar(&p.acceptStaleLeases, "accept-stale-leases", false,
		"do not wait for API servers whose lease is stale; use it only if these API servers are gone for good")
	flags.BoolVar(&p.acceptDenials, "accept-denials", false,
		"continue when admission denies the write of an object; the object stays at the old version, and the run does not trim; a resumed run always continues")
}

func (p *policyFlags) policy() storageversion.Policy {
	return storageversion.Policy{Settle: p.settle.policy(), AcceptStaleLeases: p.acceptStaleLeases, AcceptDenials: p.acceptDenials}
}

// WriteFlag is the flag --write.
type WriteFlag struct{ cli.Choice }

// AddTo registers the flag.
func (w *WriteFlag) AddTo(c *cobra.Command) {
	w.Choice = cli.Choice{Value: string(storageversion.WritePatch), Kind: "string"}
	for _, one := range storageversion.Writes {
		w.Allowed = append(w.Allowed, string(one))
	}
	w.Choice.AddTo(c, "write", "", "how to write an object; Patch: an empty merge patch; StatusPatch: an empty merge patch of /status, "+
		"which webhooks of the object itself do not see; Update: read the object and write it back; Apply, StatusApply: server-side apply without fields")
}

// Write is the value of the flag.
func (w *WriteFlag) Write() storageversion.Write { return storageversion.Write(w.Value) }
