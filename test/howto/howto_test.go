package howto_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-dev/godwit/test/howto"
)

// guide writes a guide with one console block.
func guide(t *testing.T, lines ...string) howto.Guide {
	t.Helper()
	file := filepath.Join(t.TempDir(), "guide.md")
	text := "Text.\n\n   ```console\n   " + strings.Join(lines, "\n   ") + "\n   ```\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return howto.Guide{File: file, Placeholders: map[string]string{"NAME": "jane"}, Dir: t.TempDir(), Env: os.Environ()}
}

func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		want  string // of the error; none if empty
	}{
		"Equal":             {[]string{"$ printf 'a\\nb\\n'", "a", "b"}, ""},
		"AnotherLine":       {[]string{"$ printf 'a\\nb\\n'", "a"}, "printed:\na\nb"},
		"NoOutput":          {[]string{"$ true"}, ""},
		"OutputOfNothing":   {[]string{"$ echo a"}, "printed:\na"},
		"AnyLines":          {[]string{"$ printf 'a\\nb\\nc\\n'", "a", "...", "c"}, ""},
		"AnyLinesAndMore":   {[]string{"$ printf 'a\\nb\\n'", "...", "c"}, "want:\n...\nc"},
		"AnyText":           {[]string{"$ echo took 17s", "took ...s"}, ""},
		"Columns":           {[]string{"$ echo 'a     b'", "a b"}, ""},
		"NoExpression":      {[]string{"$ echo abc", "a.c"}, "printed:\nabc"},
		"Variables":         {[]string{"$ x=1", "$ echo $x", "1"}, ""},
		"Placeholder":       {[]string{"$ echo NAME RENAMED", "jane RENAMED"}, ""},
		"AnErrorThatIsSaid": {[]string{"$ echo gone >&2; false", "gone", "$ echo b", "b"}, ""},
		"TheShellEnds":      {[]string{"$ exit 3"}, "the shell ends in `exit 3`"},
	} {
		commands, err := howto.Run(t.Context(), guide(t, c.lines...))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want == "" && commands == 0:
			t.Errorf("%s: no command ran", name)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

// TestFiles: a file is written before the commands that come after it.
func TestFiles(t *testing.T) {
	g := guide(t, "$ cat a.yaml", "# a.yaml", "name: jane")
	text, err := os.ReadFile(g.File)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(g.File, append([]byte("```yaml\n# a.yaml\nname: NAME\n```\n"), text...), 0o600); err != nil {
		t.Fatal(err)
	}
	var written []string
	g.Written = func(name string) error {
		written = append(written, name)
		return nil
	}
	if _, err := howto.Run(t.Context(), g); err != nil {
		t.Error(err)
	}
	if len(written) != 1 || written[0] != "a.yaml" {
		t.Errorf("%v is written, want a.yaml", written)
	}
	g.Written = func(string) error { return errors.New("the server does not start") }
	if _, err := howto.Run(t.Context(), g); err == nil || !strings.Contains(err.Error(), "after a.yaml: the server does not start") {
		t.Errorf("error %v, want that of the server", err)
	}
}
