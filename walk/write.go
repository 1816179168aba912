package walk

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/godwit-dev/godwit/internal/apierror"
)

// Write makes one write of an object within the byte budget. It waits for room,
// calls send, and counts the bytes that send reports as added to etcd: the size of
// the object, or 0 where the server found nothing to change. After an error that
// leaves open whether the object was written, Write counts the largest object
// there can be.
//
// Only writes that are stored belong here: no reviews and no dry runs. Without a
// budget, Write only calls send.
func (l *Limiter) Write(ctx context.Context, send func(context.Context) (written int64, err error)) error {
	return l.write(ctx, false, func(ctx context.Context, _ bool) (int64, error) { return send(ctx) })
}

// WriteSampled is Write for a client to which a size costs something, such as an answer
// with the whole object. It counts what send reports only where measure is true: until
// half of the budget is used, that is one write in four, at random, which counts for
// four. Beyond half, and with a budget below the default, it is every write.
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
	countsFor := l.bytes.countsFor(sampled)
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

// Book counts bytes that were added to etcd by a write which can't wait for
// room, such as the last one of a walk that is to stop. Later writes wait until
// these bytes leave the window.
func (l *Limiter) Book(written int64) {
	if l.bytes != nil {
		l.bytes.add(written)
	}
}

// CountsBytes reports whether there is a byte budget. Without one, the sizes of
// objects need not be known.
func (l *Limiter) CountsBytes() bool { return l.bytes != nil }

// WaitsForBytes is the time until the next write may start, where the byte budget
// alone delays it, and 0 otherwise.
func (l *Limiter) WaitsForBytes() time.Duration {
	if l.bytes == nil {
		return 0
	}
	return l.bytes.delay()
}

// mayHaveWritten reports whether the server may have carried out a request in
// spite of the error: it timed out, or the connection was lost.
func mayHaveWritten(err error) bool {
	if errors.Is(err, ErrStopped) || errors.Is(err, ErrTooLate) || utilnet.IsConnectionRefused(err) {
		return false // it was not sent
	}
	if apierror.IsAnswer(err) {
		return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
	}
	return true
}
