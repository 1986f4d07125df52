package store

// Local reports whether s is a directory or in memory. There, asking for one object
// costs less than its part of a listing.
func Local(s Store) bool {
	switch s := s.(type) {
	case *counted:
		return Local(s.Store)
	case *guarded:
		return Local(s.Store)
	case *placed:
		return Local(s.Store)
	case *cloud:
		return s.local
	case *dir:
		return true
	}
	return false
}
