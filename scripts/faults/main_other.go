//go:build !linux || !(amd64 || arm64)

// Command faults lets faults befall the programs, and looks at what comes of
// it: see the README beside it.
package main

import "fmt"

func main() {
	fmt.Println("skipped: faults are let befall programs on Linux only, on amd64 and arm64")
}
