package cli

import (
	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// maxVerbose is where Kubernetes' libraries have said all they know.
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
