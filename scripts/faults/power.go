//go:build linux && (amd64 || arm64)

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// From the kernel's ext4.h: the file system stops at once, and what its journal
// has not yet written is lost, as when the power fails.
const (
	ext4Shutdown   = 0x8004587d
	ext4NoLogFlush = 2
)

// disk is an ext4 file system in a file.
type disk struct {
	loop, dir string
	mounted   bool
}

// errNoDisk tells why there is none.
var errNoDisk = errors.New("power cuts need root, loop devices and ext4")

func tool(ctx context.Context, argv ...string) (string, error) {
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, out)
	}
	return strings.TrimSpace(string(out)), err
}

func newDisk(ctx context.Context, work string) (*disk, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("%w: not root", errNoDisk)
	}
	image, dir := filepath.Join(work, "disk"), filepath.Join(work, "mnt")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		return nil, err
	}
	if err := os.Truncate(image, 64<<20); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		return nil, err
	}
	if _, err := tool(ctx, "mkfs.ext4", "-q", "-F", image); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoDisk, err)
	}
	loop, err := tool(ctx, "losetup", "--find", "--show", image)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoDisk, err)
	}
	k := &disk{loop: loop, dir: dir}
	if err := k.mount(ctx); err != nil {
		k.close()
		return nil, fmt.Errorf("%w: %w", errNoDisk, err)
	}
	return k, nil
}

func (k *disk) mount(ctx context.Context) error {
	_, err := tool(ctx, "mount", "-t", "ext4", k.loop, k.dir)
	k.mounted = err == nil
	return err
}

func (k *disk) unmount(ctx context.Context) error {
	_, err := tool(ctx, "umount", k.dir)
	k.mounted = k.mounted && err != nil
	return err
}

func (k *disk) close() error {
	ctx := context.Background() // even after an interrupt
	var err error
	if k.mounted {
		err = k.unmount(ctx)
	}
	_, lerr := tool(ctx, "losetup", "--detach", k.loop)
	return errors.Join(err, lerr)
}

// on calls f with a descriptor of the file system.
func (k *disk) on(f func(fd int) error) error {
	fd, err := unix.Open(k.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return f(fd)
}

func (k *disk) sync() error { return k.on(unix.Syncfs) }

// commit syncs a file that nobody else has: that writes the file system's
// journal, and so all names, but not the data of other files.
func (k *disk) commit() error {
	f, err := os.OpenFile(filepath.Join(k.dir, "bystander"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write([]byte("x")); err != nil {
		return err
	}
	return f.Sync()
}

func (k *disk) shutdown() error {
	return k.on(func(fd int) error {
		how := uint32(ext4NoLogFlush)
		return ioctl(fd, ext4Shutdown, unsafe.Pointer(&how))
	})
}

// cut cuts the power before a call of the command, and looks at what the disk
// has after that. Somebody else may have synced the disk some calls before, or a
// file of his, so that a part of what the command did without a sync is there.
// Unsynced, the command's syncs are answered without being done.
func (t *trial) cut(ctx context.Context, k *disk, unsynced bool) (err error) {
	dir := filepath.Join(k.dir, fmt.Sprintf("dir-%d", t.e.serial.Add(1)))
	if err := copyTree(t.template, dir); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := k.sync(); err != nil {
		return err
	}
	n := 1 + rand.IntN(len(t.ops)+1) // the last of them: after its end
	at, what, sync := -1, "", func() error { return nil }
	switch rand.IntN(4) {
	case 0:
		at, what, sync = 1+rand.IntN(n), "all", k.sync
	case 1, 2:
		at, what, sync = n-rand.IntN(min(n, 10)), "another file", k.commit
	}
	var hit op
	var bad error
	argv := t.s.command(t.e, dir)
	_, err = supervise(ctx, dir, false, t.s.stdin, func(i int, o op) verdict {
		if i == at {
			bad = errors.Join(bad, sync())
		}
		if i == n {
			hit = o
			bad = errors.Join(bad, k.shutdown())
			return verdict{kill: true}
		}
		if unsynced {
			return syncsSkipped(o)
		}
		return verdict{}
	}, argv...)
	if err := errors.Join(err, bad); err != nil {
		return err
	}
	if hit.Kind == "" { // this time it made fewer calls
		if err := k.shutdown(); err != nil {
			return err
		}
	}
	if err := k.unmount(ctx); err != nil {
		return err
	}
	if err := k.mount(ctx); err != nil {
		return err
	}
	deletes := !t.s.viewer && !t.s.list && rand.IntN(2) == 0
	err = t.afterCut(ctx, dir, hit.Kind == "", deletes)
	if err != nil {
		err = fmt.Errorf("%s: power cut before call %d, %s (synced before call %d: %s):\n%w", t.s.name, n, hit, at, what, err)
	}
	return err
}

// cuts cuts the power n times, in scenarios whose name contains only, and gives
// what went wrong.
func (e *env) cuts(ctx context.Context, only string, n int, unsynced bool) (tried int, findings []error, err error) {
	k, err := newDisk(ctx, e.work)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, k.close()) }()
	var trials []*trial
	for _, s := range append(scenarios(e), listScenarios(e)...) {
		if s.repeated || !strings.Contains(s.name, only) {
			continue
		}
		s.name += " (on a disk)"
		t, err := newTrial(ctx, e, s)
		if err != nil {
			return 0, nil, fmt.Errorf("%s: %w", s.name, err)
		}
		trials = append(trials, t)
	}
	for ; tried < n && len(trials) > 0; tried++ {
		if err := ctx.Err(); err != nil {
			return tried, findings, err
		}
		if err := trials[tried%len(trials)].cut(ctx, k, unsynced); err != nil {
			findings = append(findings, err)
			if !k.mounted {
				return tried + 1, findings, nil
			}
		}
	}
	return tried, findings, nil
}
