package frame

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// SettleFlag is a duration. Its zero means no wait, and the zero of storageversion.Policy
// means the default.
type SettleFlag time.Duration

var _ pflag.Value = new(SettleFlag)

// Policy returns the duration in the form of [decision.Policy].
func (s *SettleFlag) Policy() time.Duration {
	if *s == 0 {
		return -1
	}
	return time.Duration(*s)
}

// Set implements pflag.Value.
func (s *SettleFlag) Set(text string) error {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return ErrDuration
	case d < 0:
		return errors.New("it must be zero or more; 0s means no wait")
	}
	*s = SettleFlag(d)
	return nil
}

// Type implements pflag.Value.
func (s *SettleFlag) Type() string { return "duration" }

// String implements pflag.Value.
func (s *SettleFlag) String() string { return fmt.Sprintf("%gs", time.Duration(*s).Seconds()) }

// PolicyFlags are the flags of storageversion.Policy, which decide when a run writes and what a denied write means.
type PolicyFlags struct {
	settle            SettleFlag
	acceptStaleLeases bool
	acceptDenials     bool
}

// AddTo registers the flags.
func (p *PolicyFlags) AddTo(flags *pflag.FlagSet) {
	p.settle = SettleFlag(decision.DefaultSettle)
	flags.Var(&p.settle, "settle", "time to wait after a change of the storage version or of an encryption key before the first write; "+
		"0s: do not wait; an API server may then write objects back in their old form")
	flags.BoolVar(&p.acceptStaleLeases, "accept-stale-leases", false,
		"do not wait for API servers whose lease is stale or that have none; use it only if these API servers are gone for good")
	flags.BoolVar(&p.acceptDenials, "accept-denials", false,
		"continue when admission denies the write of an object; the object keeps its old form, and crd run does not trim")
}

// Policy returns the policy of the flags.
func (p *PolicyFlags) Policy() decision.Policy {
	return decision.Policy{Settle: p.settle.Policy(), AcceptStaleLeases: p.acceptStaleLeases, AcceptDenials: p.acceptDenials}
}

// WriteFlag is the flag --write.
type WriteFlag struct{ Choice }

// AddTo registers the flag.
func (w *WriteFlag) AddTo(c *cobra.Command) {
	w.Choice = Choice{Value: string(decision.WritePatch), Kind: "string"}
	for _, one := range decision.Writes {
		w.Allowed = append(w.Allowed, string(one))
	}
	w.Choice.AddTo(c, "write", "", "how to write an object; Patch: an empty merge patch, or an apply where a conversion webhook must convert managedFields; StatusPatch: the same of /status, "+
		"which webhooks of the object itself do not see; Update: read the object and write it back; Apply, StatusApply: server-side apply without fields")
}

// Write returns the value of the flag.
func (w *WriteFlag) Write() decision.Write { return decision.Write(w.Value) }
