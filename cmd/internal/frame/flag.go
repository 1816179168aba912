package frame

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
)

// DurationFlag is a duration above zero. Unset means no limit.
type DurationFlag time.Duration

// CountFlag is a whole number above zero.
type CountFlag int

// RateFlag is a number per second above zero. Unset means no limit.
type RateFlag float64

var (
	_ pflag.Value = new(DurationFlag)
	_ pflag.Value = new(CountFlag)
	_ pflag.Value = new(RateFlag)
)

// ErrDuration is the error of a flag whose value is not a duration.
var ErrDuration = errors.New("write a duration such as 75s or 2m")

var errPositive = errors.New("it must be above zero")

// Set implements pflag.Value.
func (d *DurationFlag) Set(text string) error {
	parsed, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return ErrDuration
	case parsed <= 0:
		return errPositive
	}
	*d = DurationFlag(parsed)
	return nil
}

// Type implements pflag.Value.
func (d *DurationFlag) Type() string { return "duration" }

// String implements pflag.Value.
func (d *DurationFlag) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

// Limit ends the context after the time, with the cause of --timeout. It sets no deadline: the limiter would treat an
// exceeded deadline as a server that does not answer.
func (d *DurationFlag) Limit(ctx context.Context) (context.Context, func()) {
	if *d == 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(time.Duration(*d), func() { cancel(errTimeout) })
	return ctx, func() { timer.Stop(); cancel(nil) }
}

// Set implements pflag.Value.
func (c *CountFlag) Set(text string) error {
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return errors.New("write a whole number")
	case n <= 0:
		return errPositive
	}
	*c = CountFlag(n)
	return nil
}

// Type implements pflag.Value.
func (c *CountFlag) Type() string { return "int" }

// String implements pflag.Value.
func (c *CountFlag) String() string { return strconv.Itoa(int(*c)) }

// Set implements pflag.Value.
func (r *RateFlag) Set(text string) error {
	n, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return errors.New("write a number, of writes per second")
	case !(n > 0): // also false for NaN
		return errPositive
	}
	*r = RateFlag(n)
	return nil
}

// Type implements pflag.Value.
func (r *RateFlag) Type() string { return "float" }

// String implements pflag.Value.
func (r *RateFlag) String() string {
	if *r == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(*r), 'g', -1, 64)
}

// Choice is a flag with a fixed set of values. An unknown value is an error of the
// command line that lists the values.
type Choice struct {
	Value   string
	Allowed []string
	Kind    string
}

var _ pflag.Value = &Choice{}

// String implements pflag.Value.
func (c *Choice) String() string { return c.Value }

// Type implements pflag.Value.
func (c *Choice) Type() string { return c.Kind }

// Set implements pflag.Value.
func (c *Choice) Set(value string) error {
	if slices.Contains(c.Allowed, value) {
		c.Value = value
		return nil
	}
	return fmt.Errorf("choose one of %s", strings.Join(c.Allowed, ", "))
}

// AddTo registers the flag and its completion.
func (c *Choice) AddTo(command *cobra.Command, name, shorthand, usage string) {
	command.Flags().VarP(c, name, shorthand, usage)
	_ = command.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(c.Allowed, cobra.ShellCompDirectiveNoFileComp))
}

// BytesFlag is a number of bytes as a Kubernetes quantity, or "none", which is a negative
// number as in walk.Limits.
type BytesFlag int64

var _ pflag.Value = new(BytesFlag)

const (
	noBytes = "none"

	// leastBytes refuses 512 instead of 512Mi, which would allow one object in five minutes.
	leastBytes = 1 << 20
)

// Set implements pflag.Value.
func (b *BytesFlag) Set(text string) error {
	if text == noBytes {
		*b = -1
		return nil
	}
	q, err := resource.ParseQuantity(text)
	switch {
	case err != nil, q.Cmp(*resource.NewQuantity(q.Value(), q.Format)) != 0: // 100m is a tenth of a byte
		return errors.New("write a number of bytes such as 512Mi, or none")
	case q.Value() < leastBytes:
		return fmt.Errorf("it must be at least %s; none means no limit", bytesText(leastBytes))
	}
	*b = BytesFlag(q.Value())
	return nil
}

// Type implements pflag.Value.
func (b *BytesFlag) Type() string { return "quantity" }

// String implements pflag.Value.
func (b *BytesFlag) String() string {
	if *b < 0 {
		return noBytes
	}
	return bytesText(int64(*b))
}

func bytesText(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }
