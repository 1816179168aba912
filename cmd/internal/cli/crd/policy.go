package crd

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/crdmigrator"
)

// settleFlag is a duration of which 0 means none at all, while the zero value
// of crdmigrator.Policy means the default.
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
		return errors.New("it can't be below zero; 0s means no time at all")
	}
	*s = settleFlag(d)
	return nil
}

func (s *settleFlag) Type() string { return "duration" }

func (s *settleFlag) String() string { return fmt.Sprintf("%gs", time.Duration(*s).Seconds()) }

// policyFlags are the flags of crdmigrator.Policy.
type policyFlags struct {
	settle            settleFlag
	acceptStaleLeases bool
	acceptDenials     bool
}

func (p *policyFlags) addTo(flags *pflag.FlagSet) {
	p.settle = settleFlag(crdmigrator.DefaultSettle)
	flags.Var(&p.settle, "settle", "how long after a change of the storage version nothing is written yet; "+
		"0s: no wait, at the risk that a server puts objects back to the old version")
	flags.BoolVar(&p.acceptStaleLeases, "accept-stale-leases", false,
		"do not wait for API servers whose lease is stale; they must be gone for good")
	flags.BoolVar(&p.acceptDenials, "accept-denials", false,
		"go on although the API server refuses to write some object; such objects are left behind, and nothing is trimmed; a resumed run goes on in any case")
}

func (p *policyFlags) policy() crdmigrator.Policy {
	return crdmigrator.Policy{Settle: p.settle.policy(), AcceptStaleLeases: p.acceptStaleLeases, AcceptDenials: p.acceptDenials}
}

// WriteFlag is a crdmigrator.Write.
type WriteFlag struct{ cli.Choice }

// AddTo registers the flag.
func (w *WriteFlag) AddTo(c *cobra.Command) {
	w.Choice = cli.Choice{Value: string(crdmigrator.WritePatch), Kind: "string"}
	for _, one := range crdmigrator.Writes {
		w.Allowed = append(w.Allowed, string(one))
	}
	w.Choice.AddTo(c, "write", "", "how an object is written; patch: an empty merge patch; status-patch: the same on /status, "+
		"past webhooks of the object itself; update: read it and put it back; apply, status-apply: apply nothing on the server")
}

// Write is the value of the flag.
func (w *WriteFlag) Write() crdmigrator.Write { return crdmigrator.Write(w.Value) }
