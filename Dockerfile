# An image of your own commit: of the manager, and of every other command of godwit. It has one static program only. `make release`
# makes the image of a release without an engine, from the program in the archives.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY . .
ARG TARGETOS TARGETARCH
# The version of the release, such as v1.2.3.
ARG VERSION
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -ldflags="-s -w -X github.com/godwit-dev/godwit/cmd/internal/frame.version=$VERSION" \
    -o /godwit ./cmd/godwit

# No CA certificates: the one for the API server is mounted with the ServiceAccount's token.
FROM scratch
COPY --from=build /godwit /godwit
# A number: with a name, a kubelet can't check that the user is not root.
USER 65532:65532
ENTRYPOINT ["/godwit"]
