module github.com/godwit-dev/godwit/test/docs

go 1.26.0

replace (
	github.com/godwit-dev/godwit => ../..
	github.com/godwit-dev/godwit/test => ..
)

require (
	github.com/creack/pty v1.1.24
	github.com/godwit-dev/godwit/test v0.0.0
	github.com/hinshun/vt10x v0.0.0-20220301184237-5011da428d02
	github.com/yuin/goldmark v1.8.7
)
