//go:build !linux

// Package gluster makes a volume of GlusterFS on Linux.
package gluster

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

var errNone = errors.New("GlusterFS is for Linux")

// Supported returns an error: GlusterFS needs Linux.
func Supported() error { return errNone }

// Inside returns false.
func Inside() bool { return false }

// Again returns an error.
func Again(context.Context, ...string) (*exec.Cmd, error) { return nil, errNone }

// Main prints that it does nothing.
func Main(context.Context) int {
	fmt.Println("skipped, on GlusterFS:", errNone)
	return 0
}

// Volume is a volume.
type Volume struct{}

// New returns an error.
func New(context.Context, string) (*Volume, error) { return nil, errNone }

// Mount returns an error.
func (*Volume) Mount(context.Context, string) error { return errNone }

// Close does nothing.
func (*Volume) Close() {}

// Count returns an error.
func (*Volume) Count(context.Context) error { return errNone }

// Calls returns an error.
func (*Volume) Calls(context.Context) (map[string]int, error) { return nil, errNone }

// Times returns an error.
func (*Volume) Times() (mounts, replicas time.Duration, err error) { return 0, 0, errNone }
