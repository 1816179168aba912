package manifest

import (
	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/crdmigrator/advise"
)

// Answers is the flag --answer: what the user knows about paths of CRDs.
type Answers struct{ Texts []string }

// AddTo registers the flag.
func (a *Answers) AddTo(c *cobra.Command) {
	c.Flags().StringArrayVar(&a.Texts, "answer", nil, "what you know about a path, as `PATH=ANSWER`; ANSWER is FromObject, ExternalState, Unused, Backfill or NoBackfill; repeat the flag for several")
	_ = c.RegisterFlagCompletionFunc("answer", cobra.NoFileCompletions)
}

// Parse returns the answers by their paths.
func (a *Answers) Parse() (map[string]advise.Answer, error) {
	answers := map[string]advise.Answer{}
	for _, text := range a.Texts {
		path, answer, err := advise.ParseAnswer(text)
		if err != nil {
			return nil, frame.Usagef("invalid argument %q for \"--answer\": %v", text, err)
		}
		answers[path] = answer
	}
	return answers, nil
}
