package crd

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
)

// bytesFlag is a number of bytes as a Kubernetes quantity, or "none", which is a negative
// number as in walk.Limits.
type bytesFlag int64

var _ pflag.Value = new(bytesFlag)

const (
	// maxBytesFlag is the name of the flag.
	maxBytesFlag = "max-bytes-per-5m"

	noBytes = "none"

	// leastBytes catches 512 for 512Mi, which would write one object in five minutes.
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
		return errors.New("write a number of bytes such as 512Mi, or none")
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
