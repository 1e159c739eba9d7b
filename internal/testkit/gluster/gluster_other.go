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

// Supported returns an error: there can be no volume here.
func Supported() error { return errNone }

// Inside is false.
func Inside() bool { return false }

// Again is an error.
func Again(context.Context, ...string) (*exec.Cmd, error) { return nil, errNone }

// Main says that it does nothing.
func Main(context.Context) int {
	fmt.Println("skipped, on GlusterFS:", errNone)
	return 0
}

// Volume is a volume.
type Volume struct{}

// New is an error.
func New(context.Context, string) (*Volume, error) { return nil, errNone }

// Mount is an error.
func (*Volume) Mount(context.Context, string) error { return errNone }

// Close does nothing.
func (*Volume) Close() {}

// Set is an error.
func (*Volume) Set(context.Context, string, string) error { return errNone }

// Count is an error.
func (*Volume) Count(context.Context) error { return errNone }

// Calls is an error.
func (*Volume) Calls(context.Context) (map[string]int, error) { return nil, errNone }

// Times is an error.
func (*Volume) Times() (mounts, replicas time.Duration, err error) { return 0, 0, errNone }
