{{/*
The alerts of the features that are on, as groups of a PrometheusRule: those of files/alerts/process.yaml for each feature, and
those of the file of the feature. The words in capitals there are replaced. An alert without a runbook_url has a section in
docs/reference/alerts.md.
*/}}
{{- define "godwit.alerts" -}}
{{- $rule := .Values.metrics.prometheusRule -}}
{{- $groups := list -}}
{{- range include "godwit.enabled" . | fromYamlArray -}}
{{- $lease := printf "godwit-%s" (eq .component "hub-agent" | ternary "agent" .component) -}}
{{- $rules := list -}}
{{- range $file := list "process" .component -}}
{{- $rules = concat $rules ($.Files.Get (printf "files/alerts/%s.yaml" $file) | fromYaml).rules -}}
{{- end -}}
{{- $text := toYaml $rules | replace "NAMESPACE" $.Release.Namespace | replace "NAME" .name | replace "COMPONENT" .component | replace "LEASE" $lease | replace "RUNBOOKS" (trimSuffix "/" $rule.runbookURL) -}}
{{- $kept := list -}}
{{- range fromYamlArray $text -}}
{{- if not (has .alert $rule.disabled) -}}
{{- $_ := set . "labels" (merge .labels $rule.alertLabels) -}}
{{- if not .annotations.runbook_url -}}
{{- $_ := set .annotations "runbook_url" (printf "%s/alerts.md#%s" (trimSuffix "/" $rule.runbookURL) (lower .alert)) -}}
{{- end -}}
{{- $kept = append $kept . -}}
{{- end -}}
{{- end -}}
{{- if $kept -}}
{{- $groups = append $groups (dict "name" (printf "godwit-%s" .component) "rules" $kept) -}}
{{- end -}}
{{- end -}}
{{- toYaml $groups -}}
{{- end -}}
