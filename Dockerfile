FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /lubdub ./cmd/lubdub

FROM scratch
# Roots for rediss:// without redis-tls-ca-file, and for whatever else is dialled by TLS. They come with the build's image
# and not inside the binary, so that they are renewed with the image, and others can be mounted over them.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /lubdub /lubdub
USER 65532:65532
ENTRYPOINT ["/lubdub"]
CMD ["serve"]
