package godwit

// Severity says what a finding does to what the user has in mind.
type Severity uint8

const (
	// Blocks means that a migration must not start, or that something is broken. It is the zero
	// value: a finding whose severity was not set is not taken for a harmless one.
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

// Finding is what a plan, a check or a run has found about an object. Packages add facts in
// fields beside it, and never as text that is to be parsed.
type Finding struct {
	Severity Severity `json:"-"`
	// Reason is one that the package declares which found it.
	Reason *Reason `json:"reason"`
	// Message names the object and the cause, in the words of the API server where it answered.
	Message string `json:"message"`
	// Fix is what to do about it, for this object: one or several ways of the reason's fix.
	Fix Fix `json:"-"`
}

// Line is the reason and the message. It is no String method, which types that embed a Finding would inherit.
func (f Finding) Line() string { return f.Reason.String() + ": " + f.Message }
