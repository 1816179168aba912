package remedy

import (
	"github.com/godwit-dev/godwit/cmd/internal/lint/providerlint"
	"github.com/godwit-dev/godwit/externalname/fieldmigration"
)

// Providers are the reasons of `godwit lint provider`, and of the objects that a migration of fields did not reach.
var Providers = []ReasonDoc{
	{Reason: string(providerlint.KeyNotDeclared), UserAction: true,
		Meaning: "A CRD of managed resources does not say which fields make the key of the external resource, so that nothing is checked.",
		Remedy:  "Add the annotation that the message shows, with the value None if the external system makes the key."},
	{Reason: string(providerlint.KeyUnreadable), UserAction: true,
		Meaning: "The annotation on the CRD is not a list of PATH=Immutable and PATH=Mutable.",
		Remedy:  "Correct the annotation."},
	{Reason: string(providerlint.KeyFieldMissing), UserAction: true,
		Meaning: "The annotation names a field that a served version does not have.",
		Remedy:  "Correct the path, or add the field to the version."},
	{Reason: string(providerlint.KeyCanChange), UserAction: true,
		Meaning: "A field is part of the key of the external resource, and no rule of the CRD refuses another value. A change would identify another resource.",
		Remedy:  "Write the rule that the message shows. If the external system can change this part of the key, declare the field as Mutable."},
	{Reason: string(providerlint.KeyCanBeRemoved), UserAction: true,
		Meaning: "An update can remove the field, or what it is in, and a later one can set another value. A rule on the field is not evaluated then.",
		Remedy:  "Write the rule on what the field is in, as the message shows, and make that required."},
	{Reason: string(providerlint.SchemaUnreadable), UserAction: true,
		Meaning: "The schema of a served version is missing or invalid, or the CRD is part of a template, so that nothing is known about its rules.",
		Remedy:  "Generate the CRD again, or render the template and check the result."},
	{Reason: string(providerlint.ExceptionWithoutReason), UserAction: true,
		Meaning: "A kind does not follow a rule of the contract, and does not say why.",
		Remedy:  "Set Reason. The reference of the kind prints it."},
	{Reason: string(providerlint.ExceptionUnreadable), UserAction: true,
		Meaning: "The reason of an exception is not a constant text of its package, so that it may be empty.",
		Remedy:  "Write the text in place, or as a constant of the package."},
	{Reason: string(providerlint.ExceptionMissing), UserAction: true,
		Meaning: "A kind has KeyFromStatus and declares no exception. The provider would refuse it at startup.",
		Remedy:  "Declare an exception of rule NameFromCreate with a reason."},
	{Reason: fieldmigration.ReasonNotMigrated, UserAction: true,
		Meaning: "An object passed admission, and its fields were not migrated: the webhook or the policy is missing, or does not match the object.",
		Remedy:  "Install the webhook or the MutatingAdmissionPolicy of the migration, and run the migration of existing objects again."},
}
