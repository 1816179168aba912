package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/revision"
)

// settleFlag is a duration of which 0 means none at all, while the zero value
// of crdmigrator.Policy means the default.
type settleFlag time.Duration

// durationFlag is a duration above zero; unset means no limit.
type durationFlag time.Duration

// retentionFlag is a duration of at least revision.MinRetention.
type retentionFlag time.Duration

// countFlag is a whole number above zero.
type countFlag int

// rateFlag is a number per second above zero; unset means no limit.
type rateFlag float64

// bytesFlag is an amount of bytes as Kubernetes writes it, or "none", which is
// below 0 as in walk.Limits.
type bytesFlag int64

var (
	_ pflag.Value = new(settleFlag)
	_ pflag.Value = new(durationFlag)
	_ pflag.Value = new(retentionFlag)
	_ pflag.Value = new(countFlag)
	_ pflag.Value = new(rateFlag)
	_ pflag.Value = new(bytesFlag)
)

func (s *settleFlag) policy() time.Duration {
	if *s == 0 {
		return -1
	}
	return time.Duration(*s)
}

var (
	errDuration = errors.New("write a duration such as 75s or 2m")
	errPositive = errors.New("it must be above zero")
)

func (s *settleFlag) Set(text string) error {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return errDuration
	case d < 0:
		return errors.New("it can't be below zero; 0s means no time at all")
	}
	*s = settleFlag(d)
	return nil
}

func (s *settleFlag) Type() string   { return "duration" }
func (s *settleFlag) String() string { return fmt.Sprintf("%gs", time.Duration(*s).Seconds()) }

func (d *durationFlag) Set(text string) error {
	parsed, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return errDuration
	case parsed <= 0:
		return errPositive
	}
	*d = durationFlag(parsed)
	return nil
}

func (d *durationFlag) Type() string { return "duration" }

func (d *durationFlag) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (r *retentionFlag) addTo(c *cobra.Command, which string) {
	*r = retentionFlag(revision.DefaultRetention)
	c.Flags().Var(r, "retention", "how long "+which+" is kept after the last reference to it is gone; at least "+revision.MinRetention.String())
}

func (r *retentionFlag) duration() time.Duration { return time.Duration(*r) }

func (r *retentionFlag) Set(text string) error {
	parsed, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return errDuration
	case parsed < revision.MinRetention:
		return fmt.Errorf("it must be at least %s, since controllers may have seen the old revision until then", revision.MinRetention)
	}
	*r = retentionFlag(parsed)
	return nil
}

func (r *retentionFlag) Type() string   { return "duration" }
func (r *retentionFlag) String() string { return time.Duration(*r).String() }

// limit ends the context after the time, as of --timeout. A deadline of the context
// would look to the limiter like a server that does not answer.
func (d *durationFlag) limit(ctx context.Context) (context.Context, func()) {
	if *d == 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(time.Duration(*d), func() { cancel(errTimeout) })
	return ctx, func() { timer.Stop(); cancel(nil) }
}

func (c *countFlag) Set(text string) error {
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return errors.New("write a whole number")
	case n <= 0:
		return errPositive
	}
	*c = countFlag(n)
	return nil
}

func (c *countFlag) Type() string   { return "int" }
func (c *countFlag) String() string { return strconv.Itoa(int(*c)) }

func (r *rateFlag) Set(text string) error {
	n, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return errors.New("write a number, of writes per second")
	case !(n > 0): // NaN is not, either
		return errPositive
	}
	*r = rateFlag(n)
	return nil
}

func (r *rateFlag) Type() string { return "float" }

func (r *rateFlag) String() string {
	if *r == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(*r), 'g', -1, 64)
}

const (
	noBytes = "none"

	// leastBytes is below what anybody wants: 512 for 512Mi would write one
	// object each five minutes.
	leastBytes = 1 << 20
)

func (b *bytesFlag) Set(text string) error {
	if text == noBytes {
		*b = -1
		return nil
	}
	q, err := resource.ParseQuantity(text)
	switch {
	case err != nil, q.Cmp(*resource.NewQuantity(q.Value(), q.Format)) != 0: // 100m is a tenth of a byte
		return errors.New("write an amount of bytes such as 512Mi, or none")
	case q.Value() < leastBytes:
		return fmt.Errorf("it must be at least %s; none means no limit", bytesText(leastBytes))
	}
	*b = bytesFlag(q.Value())
	return nil
}

func (b *bytesFlag) Type() string { return "quantity" }

func (b *bytesFlag) String() string {
	if *b < 0 {
		return noBytes
	}
	return bytesText(int64(*b))
}

func bytesText(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }

// writeFlag is a crdmigrator.Write.
type writeFlag struct{ choice }

func (w *writeFlag) addTo(c *cobra.Command) {
	w.choice = choice{value: string(crdmigrator.WritePatch), kind: "string"}
	for _, one := range crdmigrator.Writes {
		w.allowed = append(w.allowed, string(one))
	}
	w.choice.addTo(c, "write", "", "how an object is written; patch: an empty merge patch; status-patch: the same on /status, "+
		"past webhooks of the object itself; update: read it and put it back; apply, status-apply: apply nothing on the server")
}

func (w *writeFlag) write() crdmigrator.Write { return crdmigrator.Write(w.value) }

// policyFlags are the flags of crdmigrator.Policy.
type policyFlags struct {
	settle              settleFlag
	acceptSilentServers bool
	acceptDenials       bool
}

func (p *policyFlags) addTo(flags *pflag.FlagSet) {
	p.settle = settleFlag(crdmigrator.DefaultSettle)
	flags.Var(&p.settle, "settle", "how long after a change of the storage version nothing is written yet; "+
		"0s: no wait, at the risk that a server puts objects back to the old version")
	flags.BoolVar(&p.acceptSilentServers, "accept-silent-servers", false,
		"go on without API servers that are known but show no sign of life; they must be gone for good")
	flags.BoolVar(&p.acceptDenials, "accept-denials", false,
		"go on although the API server refuses to write some object; such objects are left behind, and nothing is trimmed; a resumed run goes on in any case")
}

func (p *policyFlags) policy() crdmigrator.Policy {
	return crdmigrator.Policy{Settle: p.settle.policy(), AcceptSilentServers: p.acceptSilentServers, AcceptDenials: p.acceptDenials}
}
