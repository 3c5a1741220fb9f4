{{/* SPDX-License-Identifier: BSD-2-Clause */}}
{{- define "pybpfprof.selector" -}}
app.kubernetes.io/name: pybpfprof
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{/* A name for objects of the whole cluster: another namespace may have a release with the same name. */}}
{{- define "pybpfprof.clusterName" -}}
{{ .Release.Namespace }}.{{ .Release.Name }}
{{- end }}
{{/* The value of a class cannot be changed: another value needs a class with another name. */}}
{{- define "pybpfprof.priorityClass" -}}
{{ include "pybpfprof.clusterName" . }}.priority-{{ int64 .Values.priority }}
{{- end }}
{{- define "pybpfprof.labels" -}}
{{ include "pybpfprof.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
