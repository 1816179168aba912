package kubetest

import (
	"fmt"
	"strings"

	"github.com/godwit-dev/godwit"
)

// Words returns the whole text of a fix: its steps, and the actions with their values.
func Words(f godwit.Fix) string {
	return f.Text(func(s godwit.FixStep) string {
		words := []string{s.Do}
		for _, a := range s.Actions {
			word := strings.TrimPrefix(fmt.Sprintf("%T%+v", a, a), "godwit.")
			words = append(words, strings.Replace(word, " Owner:{Manager: ServerSide:false}}", "}", 1))
		}
		return strings.Join(words, ": ")
	})
}
