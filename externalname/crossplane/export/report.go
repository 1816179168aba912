package export

import "k8s.io/apimachinery/pkg/runtime/schema"

// Code is an exit code for a command. The codes are those of godwit.
type Code int

const (
	// OK means that everything was exported.
	OK Code = 0
	// Error means that nothing could be exported.
	Error Code = 2
	// Partial means that a part was exported.
	Partial Code = 4
	// TimedOut means that a deadline ended the export.
	TimedOut Code = 124
	// Interrupted means that a signal ended the export.
	Interrupted Code = 130
)

// Report says what was exported.
type Report struct {
	Kinds []KindReport
}

// KindReport is about one kind.
type KindReport struct {
	Kind schema.GroupVersionKind
	// Listed is how many external resources exist.
	Listed int
	// Exported is how many manifests were written.
	Exported int
	// Gone is how many were deleted between List and Get.
	Gone int
	// Skipped are the external resources that were not exported.
	Skipped []Skipped
	// Incomplete is why not all external resources are known; nil if they are.
	Incomplete error
}

// Skipped is an external resource that was not exported.
type Skipped struct {
	// Name is the external name; empty if the key can't become one.
	Name string
	Err  error
}

// Code returns the exit code of a command that ran the export to its end.
func (r Report) Code() Code {
	exported, failed := 0, false
	for _, k := range r.Kinds {
		exported += k.Exported
		failed = failed || k.Incomplete != nil || len(k.Skipped) > 0
	}
	switch {
	case !failed:
		return OK
	case exported == 0:
		return Error
	}
	return Partial
}
