package walk

// Limits bound a [Limiter]. The zero value works.
type Limits struct {
	// MaxInFlight bounds the requests in flight; 0 means DefaultMaxInFlight. The limiter stays below it while the
	// server shows strain.
	MaxInFlight int
	// MaxWritesPerSecond caps how many writes start per second; 0 means no cap.
	MaxWritesPerSecond float64
	// MaxBytesPerFiveMinutes bounds the bytes that [Limiter.Write] adds to etcd within any five minutes; 0 means
	// DefaultMaxBytesPerFiveMinutes, a negative number no bound. The bound is exact for objects up to 1.5 MiB, etcd's
	// limit, and up to the budget divided by twice MaxInFlight. Larger objects are written too; they exceed the bound
	// by at most one object per write in flight. [Limiter.WriteSampled] has the error of a sample.
	MaxBytesPerFiveMinutes int64
}
