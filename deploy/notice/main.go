// Command notice prints NOTICE: the licences of every module that is linked into the released
// programs. It fails where one is not allowed. Run it in the root of the sources.
package main

import (
	"errors"
	"fmt"
	"os"
)

func main() {
	modules, err := readLinked(".")
	text := ""
	if err == nil {
		text, err = notice(modules)
	}
	if err == nil {
		_, err = os.Stdout.WriteString(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "notice:", err)
		os.Exit(1)
	}
}

// readLinked lists the linked modules with their licences.
func readLinked(dir string) ([]module, error) {
	identify, err := classifier()
	if err != nil {
		return nil, err
	}
	modules, err := linked(dir)
	if err != nil {
		return nil, err
	}
	var failed []error
	for i := range modules {
		failed = append(failed, modules[i].readLicences(identify))
	}
	return modules, errors.Join(failed...)
}
