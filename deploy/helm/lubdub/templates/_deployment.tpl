{{/* The Deployment of a role; called with (dict "root" $ "role" "api" "values" .Values.api). */}}
{{- define "lubdub.deployment" -}}
{{- $root := .root -}}
{{- $values := $root.Values -}}
{{- $pods := dict "root" $root "component" .role -}}
{{- $api := eq .role "api" -}}
{{- include "lubdub.redisIsNamed" $root -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "lubdub.fullname" $root }}-{{ .role }}
  labels:
    {{- include "lubdub.labels" $pods | nindent 4 }}
spec:
  {{- if not (and $api .values.autoscaling.enabled) }}
  replicas: {{ .values.replicas }}
  {{- end }}
  revisionHistoryLimit: 3
  strategy:
    rollingUpdate: {maxUnavailable: 0, maxSurge: 1} # the others are loaded enough
  selector:
    matchLabels:
      {{- include "lubdub.selector" $pods | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "lubdub.selector" $pods | nindent 8 }}
        app.kubernetes.io/part-of: {{ include "lubdub.fullname" $root }} # selects the replicas of both roles
        {{- with .values.podLabels }}{{ toYaml . | nindent 8 }}{{ end }}
      annotations:
        checksum/settings: {{ print (include "lubdub.settings" $root) (toYaml $root.Values.oidc) | sha256sum }}
        prometheus.io/scrape: "true"
        prometheus.io/port: "9090"
        {{- with .values.podAnnotations }}{{ toYaml . | nindent 8 }}{{ end }}
    spec:
      serviceAccountName: {{ include "lubdub.serviceAccount" $root }}
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ add $values.drainDelaySeconds 20 $values.terminationMarginSeconds }} # requests have 20 s to end
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile: {type: RuntimeDefault}
      {{- with $values.image.pullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      topologySpreadConstraints:
        {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
        - maxSkew: 1
          topologyKey: {{ . }}
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "lubdub.selector" $pods | nindent 14 }}
        {{- end }}
      {{- with .values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: lubdub
          image: "{{ $values.image.repository }}:{{ $values.image.tag | default $root.Chart.AppVersion }}"
          imagePullPolicy: {{ $values.image.pullPolicy }}
          args: [serve]
          env:
            - {name: LUBDUB_CONFIG, value: /etc/lubdub/settings/lubdub.yaml}
            - {name: LUBDUB_ROLES, value: {{ .role }}}
            {{- if $api }}
            - {name: LUBDUB_SIGNING_KEYS_FILE, value: /etc/lubdub/keys/signing-keys}
            {{- end }}
            {{- if $values.redis.existingSecret }}
            - name: LUBDUB_REDIS
              valueFrom:
                secretKeyRef: {name: {{ $values.redis.existingSecret }}, key: {{ $values.redis.existingSecretKey }}}
            {{- else }}
            - name: LUBDUB_REDIS
              value: {{ $values.redis.url | default (printf "redis://%s-redis:6379/0" (include "lubdub.fullname" $root)) | quote }}
            {{- end }}
          ports:
            {{- if $api }}
            - {name: api, containerPort: 8080}
            {{- end }}
            - {name: admin, containerPort: 9090}
          # Whether the process responds. Trouble with Redis fails neither this nor readiness: a restart would not help.
          startupProbe:
            httpGet: {path: /livez, port: admin}
            periodSeconds: 2
            failureThreshold: 30
          livenessProbe:
            httpGet: {path: /livez, port: admin}
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 3
          # Off while it drains. The drain delay covers one period and the time until every balancer knows.
          readinessProbe:
            httpGet: {path: /readyz, port: admin}
            periodSeconds: 5
            timeoutSeconds: 2
            failureThreshold: 1
          resources:
            {{- toYaml .values.resources | nindent 12 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
          volumeMounts:
            - {name: settings, mountPath: /etc/lubdub/settings, readOnly: true}
            {{- if $api }}
            - {name: keys, mountPath: /etc/lubdub/keys, readOnly: true}
            {{- end }}
            {{- if $values.tls.existingSecret }}
            - {name: tls, mountPath: /etc/lubdub/tls, readOnly: true}
            {{- end }}
            {{- if $values.redis.caSecret }}
            - {name: redis-ca, mountPath: /etc/lubdub/redis-ca, readOnly: true}
            {{- end }}
      volumes:
        - name: settings
          configMap: {name: {{ include "lubdub.fullname" $root }}}
        {{- if $api }}
        - name: keys
          secret:
            secretName: {{ $values.signingKeys.existingSecret }}
            defaultMode: 0440
            items: [{key: {{ $values.signingKeys.key }}, path: signing-keys}]
        {{- end }}
        {{- if $values.tls.existingSecret }}
        - name: tls
          secret: {secretName: {{ $values.tls.existingSecret }}, defaultMode: 0440}
        {{- end }}
        {{- if $values.redis.caSecret }}
        - name: redis-ca
          secret: {secretName: {{ $values.redis.caSecret }}, defaultMode: 0440}
        {{- end }}
{{- end -}}

{{/* The PodDisruptionBudget of a component. */}}
{{- define "lubdub.budget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "lubdub.fullname" .root }}-{{ .component }}
  labels:
    {{- include "lubdub.labels" . | nindent 4 }}
spec:
  maxUnavailable: {{ .root.Values.podDisruptionBudget.maxUnavailable }}
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "lubdub.selector" . | nindent 6 }}
{{- end -}}
