{{- define "lubdub.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Objects' names: short enough for "-sweeper" behind them. */}}
{{- define "lubdub.fullname" -}}
{{- $name := include "lubdub.name" . -}}
{{- if .Values.fullnameOverride -}}{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The labels that select the pods of a component; called with (dict "root" $ "component" "api"). */}}
{{- define "lubdub.selector" -}}
app.kubernetes.io/name: {{ include "lubdub.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "lubdub.labels" -}}
{{ include "lubdub.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "lubdub.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "lubdub.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "lubdub.publicUrl" -}}
{{- $scheme := ternary "https" "http" (ne .Values.tls.existingSecret "") -}}
{{- .Values.publicUrl | default (printf "%s://%s-api.%s.svc:%v" $scheme (include "lubdub.fullname" .) .Release.Namespace .Values.service.port) -}}
{{- end -}}

{{/* The Service that Prometheus scrapes replicas by; its name is their job. */}}
{{- define "lubdub.metricsService" -}}
{{- include "lubdub.fullname" . }}-metrics
{{- end -}}

{{/* The matchers of the series that rules evaluate. */}}
{{- define "lubdub.rulesSelector" -}}
{{- with .Values.monitoring -}}
{{- if .rules.selector -}}{{ .rules.selector }}
{{- else if .serviceMonitor.enabled -}}
{{- printf "namespace=%q,job=%q" $.Release.Namespace (include "lubdub.metricsService" $) -}}
{{- else -}}job=~".*lubdub.*"
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Redis must be configured once; a second value would be ignored silently. */}}
{{- define "lubdub.redisIsNamed" -}}
{{- $ways := 0 -}}
{{- if .Values.redis.url -}}{{- $ways = add1 $ways -}}{{- end -}}
{{- if .Values.redis.existingSecret -}}{{- $ways = add1 $ways -}}{{- end -}}
{{- if .Values.redis.bundled.enabled -}}{{- $ways = add1 $ways -}}{{- end -}}
{{- if ne (int $ways) 1 -}}
{{- fail (printf "say where Redis is: set one of redis.url, redis.existingSecret and redis.bundled.enabled; %d are set" (int $ways)) -}}
{{- end -}}
{{- end -}}

{{/* The settings file. Settings that the chart computes are refused in config, since they would have no effect. */}}
{{- define "lubdub.settings" -}}
{{- $own := dict "listen" ":8080" "admin-listen" ":9090" "public-url" (include "lubdub.publicUrl" .)
  "drain-delay" (printf "%ds" (int .Values.drainDelaySeconds)) -}}
{{- if .Values.tls.existingSecret -}}
{{- $own = merge $own (dict "tls-cert-file" "/etc/lubdub/tls/tls.crt" "tls-key-file" "/etc/lubdub/tls/tls.key") -}}
{{- end -}}
{{- if .Values.redis.caSecret -}}{{- $own = merge $own (dict "redis-tls-ca-file" "/etc/lubdub/redis-ca/ca.crt") -}}{{- end -}}
{{- if .Values.oidc -}}{{- $own = merge $own (dict "oidc-file" "/etc/lubdub/settings/oidc.yaml") -}}{{- end -}}
{{- range $key, $_ := .Values.config -}}
{{- if or (hasKey $own $key) (has $key (list "redis" "roles" "signing-keys" "signing-keys-file" "admin-tls")) -}}
{{- fail (printf "config.%s is the chart's own: it follows from the other values" $key) -}}
{{- end -}}
{{- end -}}
{{- merge $own .Values.config | toYaml -}}
{{- end -}}
