package permission

// externalNamePlan reads the CRD, for the version at which managed resources are read, and the managed
// resources.
func (s Scope) externalNamePlan() []Permission {
	all := s.readCRDs()
	for _, r := range s.objects() {
		all = append(all, s.in(r, Required, "list"))
	}
	return all
}

// externalNameApply writes annotations.
func (s Scope) externalNameApply() []Permission {
	all := s.externalNamePlan()
	for _, r := range s.objects() {
		all = append(all, s.in(r, Required, "get", "patch"))
	}
	return all
}
