{{/* The API groups whose objects may be migrated, besides godwit.dev: those of the scopes, and those named. */}}
{{- define "godwit.groups" -}}
{{- $groups := .Values.storageVersionMigrator.rbac.groups -}}
{{- range .Values.storageVersionMigrator.scopes -}}
{{- with .group -}}{{- $groups = append $groups . -}}{{- end -}}
{{- end -}}
{{- ternary (list "*") ($groups | uniq | sortAlpha) .Values.storageVersionMigrator.rbac.allGroups | toYaml -}}
{{- end -}}

{{/* The rules about the objects of these groups, and about those of the migrator's own kind: as `godwit rbac` prints them. */}}
{{- define "godwit.migratedRules" -}}
{{- $writes := append .Values.storageVersionMigrator.rbac.writes (.Values.storageVersionMigrator.defaults.write | default "Patch") -}}
{{- $update := has "Update" $writes -}}
{{- if $update }}
- apiGroups: [godwit.dev]
  resources: [controllerrevisionupgrades, controllerrevisionupgradetriggers, crdmigrations]
  verbs: [update]
{{- end }}
{{- range include "godwit.groups" . | fromYamlArray }}
- apiGroups: [{{ quote . }}]
  resources: ["*"]
  verbs: {{ ternary "[get, list, patch, update]" "[list, patch]" $update }}
{{- if or (has "StatusPatch" $writes) (has "StatusApply" $writes) }}
- apiGroups: [{{ quote . }}]
  resources: ["*/status"]
  verbs: [patch]
{{- end }}
{{- end }}
{{- end -}}
