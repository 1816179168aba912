package v1alpha1

// Failure names one object that failed or was deferred, and the reason.
type Failure struct {
	// Namespace of the object, empty if it has none.
	Namespace string `json:"namespace"`
	// Name of the object.
	Name string `json:"name"`
	// Reason is a documented CamelCase constant.
	Reason string `json:"reason"`
	// Message says what happened, in the words of the API server where it answered.
	Message string `json:"message"`
}
