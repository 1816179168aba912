package frame

import (
	"context"
	"errors"
	"io"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// maxVerbose is the highest verbosity that Kubernetes' libraries use.
const maxVerbose = 10

// Logger writes JSON, a line for each event, to stderr.
func (a *App) Logger(verbose int) logr.Logger {
	level := zapcore.InfoLevel
	for range min(verbose, maxVerbose) {
		level--
	}
	return zap.New(zap.WriteTo(a.Streams.ErrOut), zap.Level(level), zap.StacktraceLevel(zapcore.PanicLevel),
		zap.JSONEncoder(func(e *zapcore.EncoderConfig) { e.EncodeTime = zapcore.RFC3339TimeEncoder }))
}

// LogLibraries sends the logs of Kubernetes' libraries to a writer, for the whole process. Call it once.
func LogLibraries(out io.Writer) { klog.SetLogger(libraryLogger(out)) }

// libraryLogger omits the canceled requests of an interrupted command. client-go logs each as an unexpected error, and
// the command itself prints that it was interrupted.
func libraryLogger(out io.Writer) logr.Logger {
	text := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(out)))
	return text.WithSink(withoutCanceled{text.WithCallDepth(1).GetSink()})
}

type withoutCanceled struct{ logr.LogSink }

func (s withoutCanceled) Error(err error, message string, pairs ...any) {
	if !errors.Is(err, context.Canceled) {
		s.LogSink.Error(err, message, pairs...)
	}
}

func (s withoutCanceled) WithName(name string) logr.LogSink {
	return withoutCanceled{s.LogSink.WithName(name)}
}

func (s withoutCanceled) WithValues(pairs ...any) logr.LogSink {
	return withoutCanceled{s.LogSink.WithValues(pairs...)}
}
