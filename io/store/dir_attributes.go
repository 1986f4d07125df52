package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// A file has no content type and no metadata. Where they are not what the key
// implies, they are JSON in an extended attribute of the file; where the file
// system has no such attributes, or has too little space for them, in a file of
// its own under reservedDir, the sidecar.

// attributesName is the extended attribute.
const attributesName = "user.seed-engine"

// attributes are what is stored with an object.
type attributes struct {
	Key         string            `json:"key,omitempty"` // in a sidecar, whose name does not show it
	ContentType string            `json:"content_type,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
}

// attributesOf leaves out what the key implies.
func attributesOf(key string, o PutOptions) attributes {
	a := attributes{ContentType: o.ContentType, Metadata: o.Metadata}
	if a.ContentType == defaultContentType(key) {
		a.ContentType = ""
	}
	return a
}

func (a attributes) empty() bool { return a.ContentType == "" && len(a.Metadata) == 0 }

// setAttributes stores a with a file, and returns what it could not store.
func (d *dir) setAttributes(f *os.File, a attributes) attributes {
	if a.empty() {
		return a
	}
	data, err := json.Marshal(a)
	if err == nil {
		err = d.setXattr(f, attributesName, data)
	}
	if err != nil {
		return a // the sidecar takes it
	}
	return attributes{}
}

// readAttributes returns what is stored with the object of key, whose file is path.
func (d *dir) readAttributes(path, key string) (a attributes, err error) {
	data, err := getXattr(path, attributesName)
	if err != nil {
		return a, fmt.Errorf("reading metadata: %w", err)
	}
	if len(data) == 0 {
		return d.readSidecar(key)
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return a, fmt.Errorf("reading metadata: %w", err)
	}
	return a, nil
}

// sidecarPath is a hash of the key: the key itself could be a folder of another.
func (d *dir) sidecarPath(key string) string {
	sum := sha256.Sum256([]byte(key))
	name := hex.EncodeToString(sum[:])
	return filepath.Join(d.root, reservedDir, "meta", name[:2], name[2:]+".json")
}

// setSidecar writes a to the sidecar, or removes the sidecar where a is empty. It
// does not sync: see readSidecar.
func (d *dir) setSidecar(key string, a attributes) error {
	if a.empty() && !d.sidecars.Load() {
		return nil
	}
	path := d.sidecarPath(key)
	if a.empty() {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil // the usual case; unlike Remove, Lstat locks no folder
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing old metadata: %w", err)
		}
		return nil
	}
	d.sidecars.Store(true)
	a.Key = key
	data, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("encoding metadata: %w", err)
	}
	// The temporary file is in the same folder, not in one folder for all: writers
	// would wait for that folder's lock, and a rename between folders locks the
	// whole file system.
	temp := filepath.Join(filepath.Dir(path), tempPrefix+strconv.FormatUint(rand.Uint64(), 36))
	err = os.WriteFile(temp, data, fileMode)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(path), dirMode); err == nil {
			err = os.WriteFile(temp, data, fileMode)
		}
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		if rm := os.Remove(temp); rm != nil && !errors.Is(rm, fs.ErrNotExist) {
			err = errors.Join(err, rm)
		}
		return fmt.Errorf("writing metadata: %w", err)
	}
	return nil
}

// readSidecar returns the zero value where there is no sidecar. An empty file,
// which a power cut can leave because sidecars are not synced, counts as absent:
// the object itself is complete.
func (d *dir) readSidecar(key string) (a attributes, err error) {
	if !d.sidecars.Load() {
		return a, nil
	}
	data, err := os.ReadFile(d.sidecarPath(key))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 {
		return a, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &a)
	}
	if err != nil {
		return a, fmt.Errorf("reading metadata: %w", err)
	}
	return a, nil
}
