FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum go.work go.work.sum ./
COPY sdk/go/go.mod sdk/go/
RUN go mod download
COPY . .
# The commit and its date in RFC 3339: the image is built without the repository.
ARG COMMIT=
ARG DATE=
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.commit=${COMMIT} -X main.date=${DATE}" -o /lubdub ./cmd/lubdub
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /lubdub-bench ./cmd/lubdub-bench

FROM scratch
ARG COMMIT=
ARG DATE=
LABEL org.opencontainers.image.title="Lubdub" org.opencontainers.image.version="0.1.0" \
  org.opencontainers.image.revision="${COMMIT}" org.opencontainers.image.created="${DATE}"
# Roots for rediss:// without redis-tls-ca-file, and for other TLS connections. They come from the build image and
# are not in the binary, so that they are updated with the image and can be replaced by a mount.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /lubdub /lubdub
COPY --from=build /lubdub-bench /lubdub-bench
USER 65532:65532
ENTRYPOINT ["/lubdub"]
CMD ["serve"]
