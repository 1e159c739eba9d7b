//go:build !linux

package index_test

import "errors"

func mountSmall(string, int) error { return errors.ErrUnsupported }

func asNobody() bool { return false }

func asRoot() {}
