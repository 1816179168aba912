package godwit

// Severity is the effect of a finding on the user's task.
type Severity uint8

const (
	// Blocks means that a migration must not start, or that something is broken. It is the zero value, so a finding
	// without a severity is not treated as harmless.
	Blocks Severity = iota
	// Warns means that the user should know it before a migration starts.
	Warns
	// Informs means that it needs no action.
	Informs
)

var severityNames = [...]string{Blocks: "Blocks", Warns: "Warns", Informs: "Informs"}

func (s Severity) String() string {
	if int(s) < len(severityNames) {
		return severityNames[s]
	}
	return severityNames[Blocks]
}

// Finding is a problem that a plan, a check or a run has found with an object. Packages add facts in fields of their
// own types, never as text for a parser.
type Finding struct {
	Severity Severity `json:"-"`
	// Reason is a reason of the package that found the problem.
	Reason *Reason `json:"reason"`
	// Message names the object and the cause. If the API server answered, it has the API server's words.
	Message string `json:"message"`
	// Fix is the fix for this object: one or several ways of the reason's fix.
	Fix Fix `json:"-"`
}

// Line returns "reason: message". It is not named String, because types that embed a Finding would inherit the method.
func (f Finding) Line() string { return f.Reason.String() + ": " + f.Message }
