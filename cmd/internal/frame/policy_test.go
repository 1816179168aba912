package frame

import (
	"testing"
	"time"

	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

func TestSettleOfZeroMeansNoTime(t *testing.T) {
	for text, want := range map[string]time.Duration{"0s": -1, "0": -1, "1s": time.Second, "75s": decision.DefaultSettle} {
		var s SettleFlag
		if err := s.Set(text); err != nil || s.Policy() != want {
			t.Errorf("--settle=%s: policy %v, error %v; want %v", text, s.Policy(), err, want)
		}
	}
}
