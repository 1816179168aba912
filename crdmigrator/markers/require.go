package markers

// TB is what [Require] needs of a *testing.T.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Require fails a test with one line for each finding of [Check]. Patterns are
// relative to the folder of the test.
func Require(t TB, o Options, patterns ...string) {
	t.Helper()
	findings, err := Check(o, patterns...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	for _, f := range findings {
		t.Errorf("%s", f)
	}
}
