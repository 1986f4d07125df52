package main

import (
	"errors"
	"fmt"
	"os"
)

const usage = `usage: release notice           print NOTICE for the tree in the working directory
       release sbom PROGRAM     print the bill of materials of a program built from that tree`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 || args[0] == "sbom" && len(args) != 2 {
		return errors.New(usage)
	}
	modules, err := readLinked(".")
	if err != nil {
		return err
	}
	switch args[0] {
	case "notice":
		var text string
		if text, err = notice(modules); err == nil {
			_, err = os.Stdout.WriteString(text)
		}
	case "sbom":
		err = writeSBOM(os.Stdout, args[1], modules)
	default:
		err = errors.New(usage)
	}
	return err
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
