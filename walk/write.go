package walk

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/godwit-dev/godwit/internal/apierror"
)

// Write sends one write of an object within the byte budget. It waits for room, calls send, and counts the bytes that
// send reports as added to etcd: the size of the object, or 0 if the server changed nothing. If an error leaves open
// whether the object was written, Write counts the largest possible object.
//
// Use it only for writes that are stored, not for reviews and dry runs. Without a budget, Write only calls send.
func (l *Limiter) Write(ctx context.Context, send func(context.Context) (written int64, err error)) error {
	return l.write(ctx, false, func(ctx context.Context, _ bool) (int64, error) { return send(ctx) })
}

// WriteSampled is like Write, for a client to which a size is expensive, such as a response with the whole object. It
// counts the result of send only if measure is true: until half of the budget is used, for one random write in four,
// which counts for four; beyond half, and with a budget below the default, for every write.
func (l *Limiter) WriteSampled(ctx context.Context, send func(ctx context.Context, measure bool) (written int64, err error)) error {
	return l.write(ctx, true, send)
}

func (l *Limiter) write(ctx context.Context, sampled bool, send func(ctx context.Context, measure bool) (int64, error)) error {
	if l.bytes == nil {
		_, err := send(ctx, false)
		return err
	}
	if err := l.bytes.await(ctx); err != nil {
		return err
	}
	countsFor := l.bytes.sampleWeight(sampled)
	written, err := send(ctx, countsFor > 0)
	switch {
	case err == nil:
		written *= countsFor
	case mayHaveWritten(err):
		written = l.bytes.window.perWrite
	default:
		written = 0
	}
	l.bytes.finish(written)
	return err
}

// AddWritten counts the bytes of a write that can't wait for room, such as the last write of a stopped walk. Later
// writes wait until these bytes leave the window.
func (l *Limiter) AddWritten(written int64) {
	if l.bytes != nil {
		l.bytes.add(written)
	}
}

// CountsBytes reports whether the limiter has a byte budget. Without one, the sizes of objects are not needed.
func (l *Limiter) CountsBytes() bool { return l.bytes != nil }

// WaitsForBytes returns the time until the next write may start if only the byte budget delays it, and 0 otherwise.
func (l *Limiter) WaitsForBytes() time.Duration {
	if l.bytes == nil {
		return 0
	}
	return l.bytes.delay()
}

// mayHaveWritten reports whether the server may have carried out a request despite the error: it timed out, or the
// connection was lost.
func mayHaveWritten(err error) bool {
	if errors.Is(err, ErrStopped) || errors.Is(err, ErrTooLate) || utilnet.IsConnectionRefused(err) {
		return false // it was not sent
	}
	if apierror.IsAnswer(err) {
		return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
	}
	return true
}
