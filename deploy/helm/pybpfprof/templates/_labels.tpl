{{/* SPDX-License-Identifier: BSD-2-Clause */}}
{{- define "pybpfprof.selector" -}}
app.kubernetes.io/name: pybpfprof
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "pybpfprof.labels" -}}
{{ include "pybpfprof.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
