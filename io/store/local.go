package store

// Local reports whether s is a directory or in memory. There, asking for one object
// costs less than its part of a listing.
func Local(s Store) bool {
	switch s := bare(s).(type) {
	case *cloud:
		return s.local
	case *dir:
		return true
	}
	return false
}

// bare returns the store itself, without what counts its calls, guards its writes or places its keys.
func bare(s Store) Store {
	for {
		switch outer := s.(type) {
		case *counted:
			s = outer.Store
		case *guarded:
			s = outer.Store
		case *placed:
			s = outer.Store
		default:
			return s
		}
	}
}
