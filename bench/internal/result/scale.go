package result

// Scale is the result that `make bench-scale` writes to bench/out/scale-N.json.
type Scale struct {
	Date             string  `json:"date"`
	Objects          int     `json:"objects"`
	PayloadBytes     int     `json:"payloadBytes"`
	ByteBudget       bool    `json:"byteBudget"`
	WatchCache       bool    `json:"watchCache"`
	CopySeconds      float64 `json:"copySeconds"`
	PlanSeconds      float64 `json:"planSeconds"`
	PlanRSS          int64   `json:"planPeakRSSBytes"`
	KilledAfter      float64 `json:"killedAfterSeconds"`
	KilledOld        int     `json:"oldObjectsWhenKilled"`
	KilledRSS        int64   `json:"killedPeakRSSBytes"`
	ResumeSeconds    float64 `json:"resumeSeconds"`
	ResumeRSS        int64   `json:"resumePeakRSSBytes"`
	Resumed          Resumed `json:"resumed"`
	ObjectsPerSecond float64 `json:"objectsPerSecond"`
	APIServerRSS     int64   `json:"apiServerPeakRSSBytes"`
}

// Resumed is the report of the run that resumes.
type Resumed struct {
	Migrated int64 `json:"migrated"`
	Skipped  int64 `json:"skipped"`
	Requests int64 `json:"requests"`
}
