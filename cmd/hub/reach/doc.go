// Package reach says whether a global hub sees a hub as available, and whether clusters can verify the API server of a hub that they are to
// reach. It connects to that API server without credentials, and changes nothing.
package reach
