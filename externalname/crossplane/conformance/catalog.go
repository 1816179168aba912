package conformance

// Names of the checks.
const (
	EmptyNameAdoptsNothing   CheckName = "EmptyNameAdoptsNothing"
	MalformedNamesAreRefused CheckName = "MalformedNamesAreRefused"
	NameIdentifies           CheckName = "NameIdentifies"
	SeveralMatchesAreRefused CheckName = "SeveralMatchesAreRefused"
	MissingParentIsNoDrift   CheckName = "MissingParentIsNoDrift"
	CreatedCanBeDeleted      CheckName = "CreatedCanBeDeleted"

	CreateSetsName             CheckName = "CreateSetsName"
	FailedCreateKeepsName      CheckName = "FailedCreateKeepsName"
	ExistingIsNotAdopted       CheckName = "ExistingIsNotAdopted"
	LostAnswerMakesNoSecond    CheckName = "LostAnswerMakesNoSecond"
	ForeignIsNotAdopted        CheckName = "ForeignIsNotAdopted"
	StalePendingAdoptsNothing  CheckName = "StalePendingAdoptsNothing"
	ObserveOnlyWritesNothing   CheckName = "ObserveOnlyWritesNothing"
	DiffIsReported             CheckName = "DiffIsReported"
	AbsentNeedsCreate          CheckName = "AbsentNeedsCreate"
	ReadErrorIsNoAbsence       CheckName = "ReadErrorIsNoAbsence"
	MissingIsDrift             CheckName = "MissingIsDrift"
	CreatedBecomesReady        CheckName = "CreatedBecomesReady"
	StatusSurvives             CheckName = "StatusSurvives"
	SpecIsNotWritten           CheckName = "SpecIsNotWritten"
	ConflictsAreReported       CheckName = "ConflictsAreReported"
	UpdateIsApplied            CheckName = "UpdateIsApplied"
	UpToDateIsNotUpdated       CheckName = "UpToDateIsNotUpdated"
	ChangedKeyIsPersisted      CheckName = "ChangedKeyIsPersisted"
	EditedNameMakesNoSecond    CheckName = "EditedNameMakesNoSecond"
	RestoreFindsTheResource    CheckName = "RestoreFindsTheResource"
	DeleteLeavesNothing        CheckName = "DeleteLeavesNothing"
	DeleteAcceptsNotFound      CheckName = "DeleteAcceptsNotFound"
	DeleteOnce                 CheckName = "DeleteOnce"
	UnnamedDeletesNothing      CheckName = "UnnamedDeletesNothing"
	DeleteGoesByName           CheckName = "DeleteGoesByName"
	MalformedNameIsNotReleased CheckName = "MalformedNameIsNotReleased"
	KilledBeforeCreate         CheckName = "KilledBeforeCreate"
	KilledAfterCreate          CheckName = "KilledAfterCreate"
	KilledAfterUpdate          CheckName = "KilledAfterUpdate"
)

// catalog lists the checks in the order of the report.
var catalog = []check{
	{EmptyNameAdoptsNothing, "Without an external name nothing is adopted, whatever fits the spec.", []need{needNames, needAdd}, emptyNameAdoptsNothing},
	{MalformedNamesAreRefused, "A malformed external name is an error, and the external system is not called.", []need{needNames, needMalformed, needCalls}, malformedNamesAreRefused},
	{NameIdentifies, "The external resource is looked up by its external name, and never by the spec.", []need{needNames, needAdd, needRemove}, nameIdentifies},
	{SeveralMatchesAreRefused, "Several matches are an error, and nothing is created.", []need{needNames, needLookup, needTwins}, severalMatches},
	{MissingParentIsNoDrift, "A missing parent is an error, and not a missing external resource.", []need{needNames, needParent, needAdd, needCalls}, missingParent},
	{CreatedCanBeDeleted, "A key that the spec can have is refused before it is created, or can be observed and deleted afterwards.", []need{needHardKeys, needCalls}, hardKeys},
	{CreateSetsName, "Create sets the external name that the external system has given, once, and nothing sets another one before.", nil, createSetsName},
	{FailedCreateKeepsName, "A creation that fails leaves the external name as it was, is retried with a backoff, and succeeds later.", []need{needCalls}, createRefused},
	{ExistingIsNotAdopted, "A creation that fails because the external resource exists is an error, until the user sets the external name.", []need{needNames, needUniqueness, needAdd}, alreadyExists},
	{LostAnswerMakesNoSecond, "A creation whose answer is lost leads to exactly one external resource.", []need{needCalls}, lostAnswer},
	{ForeignIsNotAdopted, "An external resource that another client creates at the same time is not adopted, whatever its age.", []need{needNames, needAdd, needCalls}, foreignResource},
	{StalePendingAdoptsNothing, "A backup that was made during a creation adopts nothing without a proof.", []need{needNames, needAdd}, stalePending},
	{ObserveOnlyWritesNothing, "Under the policy Observe, nothing is written to the external system.", []need{needAdd, needChanges}, observeOnlyWritesNothing},
	{DiffIsReported, "Under the policy Observe, differences are a condition and one event.", []need{needAdd, needChanges}, diffIsReported},
	{AbsentNeedsCreate, "An external resource that does not exist is an error under policies without Create, and is not updated.", []need{needUnknown}, missingUnderPolicies},
	{ReadErrorIsNoAbsence, "A read that fails is an error on the object: nothing is created, and an object that is deleted is kept.", []need{needCalls}, readErrorsAreReported},
	{MissingIsDrift, "An external resource that another client deletes is created again, once.", []need{needRemove}, missingIsDrift},
	{CreatedBecomesReady, "An external resource that was created becomes Ready, with a status.atProvider that the API server accepts.", nil, becomesReady},
	{StatusSurvives, "An object is never Synced with a status.atProvider that is empty.", []need{needAdd, needChanges}, statusSurvives},
	{SpecIsNotWritten, "The provider does not change the spec.", nil, specIsNotWritten},
	{ConflictsAreReported, "A conflict of the external system is reported on the object.", []need{needCalls}, conflictIsReported},
	{UpdateIsApplied, "A change of the spec updates the external resource, and keeps its name.", []need{needChangePatch, needCalls}, updateIsApplied},
	{UpToDateIsNotUpdated, "An external resource that does not differ from the spec is not updated.", []need{needCalls}, upToDate},
	{ChangedKeyIsPersisted, "A key that an update changes is the external name afterwards.", []need{needNames, needRename}, updateKeepsTheKey},
	{EditedNameMakesNoSecond, "An external name that is edited while the external resource exists leads to no second one.", []need{needNames, needUnknown}, editedName},
	{RestoreFindsTheResource, "An object that is restored without its status finds its external resource.", nil, restored},
	{DeleteLeavesNothing, "An object that is deleted leaves no external resource behind.", nil, deleteLeavesNothing},
	{DeleteAcceptsNotFound, "An external resource that is gone when it is to be deleted is not an error.", []need{needRemove, needCalls}, deleteAcceptsMissing},
	{DeleteOnce, "An external resource that is being deleted is not deleted again.", []need{needDeleting, needCalls}, deleteOnce},
	{UnnamedDeletesNothing, "The deletion of an object without an external name deletes no external resource, whatever fits the spec.", []need{needNames, needAdd, needCalls}, deleteUnnamed},
	{DeleteGoesByName, "The external resource that has the external name is deleted, and not one that fits the spec.", []need{needNames, needAdd}, deleteTwin},
	{MalformedNameIsNotReleased, "An object with a malformed name keeps its finalizer until the name is corrected.", []need{needNames, needMalformed}, deleteMalformed},
	{KilledBeforeCreate, "A provider that is killed before a creation is carried out does not create twice.", []need{needCrash, needCalls}, killedBeforeCreate},
	{KilledAfterCreate, "A provider that is killed after a creation was carried out does not create twice.", []need{needCrash, needCalls}, killedAfterCreate},
	{KilledAfterUpdate, "A provider that is killed after an update has changed the key makes no second external resource.", []need{needNames, needRename, needCrash, needCalls}, killedAfterUpdate},
}

// Rule is a check and what it proves.
type Rule struct {
	Check CheckName
	Rule  string
}

// Rules lists the checks of [Run], for documentation.
func Rules() []Rule {
	list := make([]Rule, len(catalog))
	for i, c := range catalog {
		list[i] = Rule{Check: c.name, Rule: c.rule}
	}
	return list
}
