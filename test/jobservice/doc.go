// Package jobservice is an external system for tests: an HTTP service in a process of its own that creates and deletes databases
// asynchronously, as cloud services do. It can lose requests and answers, refuse, hang, and answer nonsense.
//
// A program that imports the package calls [Main] first, and [Start] starts that program again as the service.
//
//	POST   /databases          202 {"operation": id}, 409 if there is one with the name
//	GET    /databases          200 [{...}], one page; ?after=ID is the next one
//	GET    /databases/ID       200 {...}, 404
//	PUT    /databases/ID       200, 404, 409 while it is Deleting
//	DELETE /databases/ID       202 and state Deleting, 404, 409 while it is Deleting
//	GET    /operations/ID      200 {"state": Running|Succeeded|Failed, "database": id}, 404
//	GET    /operations?token=  200 {"id": id}, 404
//	PUT    /control            sets [Control]
//	GET    /requests           200 {"POST /databases": 1}: how many arrived, by pattern
//
// service.go is the service, fault.go makes requests fail, process.go starts the service, and client.go is a client.
package jobservice
