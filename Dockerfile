FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /lubdub ./cmd/lubdub

FROM scratch
COPY --from=build /lubdub /lubdub
USER 65532:65532
ENTRYPOINT ["/lubdub"]
CMD ["serve"]
