//go:build !linux || !(amd64 || arm64)

// Command faults injects faults into the programs, and checks the result: see the README beside
// it.
package main

import "fmt"

func main() {
	fmt.Println("skipped: faults are injected on Linux only, on amd64 and arm64")
}
