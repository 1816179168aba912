package manager

import "errors"

// problem is why an action of the manager failed in a way that repetition does not help.
type problem struct {
	// reason is a documented constant of the API.
	reason  string
	message string
}

// errOf makes an error of what kept a caller from its result.
func errOf(p *problem, err error) error {
	if err != nil {
		return err
	}
	return errors.New(p.message)
}
