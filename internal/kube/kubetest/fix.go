package kubetest

import (
	"fmt"
	"strings"

	"github.com/godwit-dev/godwit"
)

// Words has all that a fix says: its steps, and the actions with their values.
func Words(f godwit.Fix) string {
	return f.Text(func(s godwit.FixStep) string {
		words := []string{s.Do}
		for _, a := range s.Actions {
			words = append(words, strings.TrimPrefix(fmt.Sprintf("%T%+v", a, a), "godwit."))
		}
		return strings.Join(words, ": ")
	})
}
