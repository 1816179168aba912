# The image of the manager, and of every other command of godwit but the demo: one static program and nothing else.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY . .
ARG TARGETOS TARGETARCH
# As released, v1.2.3.
ARG VERSION
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -tags=nodemo -ldflags="-s -w -X github.com/godwit-dev/godwit/cmd/internal/cli.version=$VERSION" \
    -o /godwit ./cmd/godwit

# No authorities to trust: what signs the API server's certificate is mounted with the ServiceAccount's token.
FROM scratch
COPY --from=build /godwit /godwit
# A number, since a kubelet can't tell from a name that it isn't root.
USER 65532:65532
ENTRYPOINT ["/godwit"]
