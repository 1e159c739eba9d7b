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

// From the kernel's ext4.h and xfs_fs.h: the file system stops at once, and what
// its journal has not yet written is lost, as when the power fails.
const (
	shutdownCall = 0x8004587d
	noLogFlush   = 2
)

// disk is a file system in a file.
type disk struct {
	fs                string // ext4, xfs or btrfs
	image, loop, dir  string
	attached, mounted bool
}

// disks are the file systems that can be made, the smallest there can be.
var disks = map[string]struct {
	size int64
	mkfs []string
}{
	"ext4":  {64 << 20, []string{"mkfs.ext4", "-q", "-F"}},
	"xfs":   {320 << 20, []string{"mkfs.xfs", "-q", "-f"}},
	"btrfs": {256 << 20, []string{"mkfs.btrfs", "-q", "-f"}},
}

// errNoDisk tells why there is none.
var errNoDisk = errors.New("power cuts need root, loop devices and the file system's mkfs")

func tool(ctx context.Context, argv ...string) (string, error) {
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, out)
	}
	return strings.TrimSpace(string(out)), err
}

func newDisk(ctx context.Context, work, fs string) (*disk, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("%w: not root", errNoDisk)
	}
	kind, ok := disks[fs]
	if !ok {
		return nil, fmt.Errorf("power is cut on ext4, xfs and btrfs, not on %q", fs)
	}
	k := &disk{fs: fs, image: filepath.Join(work, "disk-"+fs), dir: filepath.Join(work, "mnt-"+fs)}
	if err := os.WriteFile(k.image, nil, 0o600); err != nil {
		return nil, err
	}
	if err := os.Truncate(k.image, kind.size); err != nil {
		return nil, err
	}
	if err := os.Mkdir(k.dir, 0o777); err != nil {
		return nil, err
	}
	if _, err := tool(ctx, append(kind.mkfs, k.image)...); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoDisk, err)
	}
	if err := k.mount(ctx); err != nil {
		k.close()
		return nil, fmt.Errorf("%w: %w", errNoDisk, err)
	}
	return k, nil
}

func (k *disk) mount(ctx context.Context) (err error) {
	if !k.attached {
		if k.loop, err = tool(ctx, "losetup", "--find", "--show", k.image); err != nil {
			return err
		}
		k.attached = true
	}
	_, err = tool(ctx, "mount", "-t", k.fs, k.loop, k.dir)
	k.mounted = err == nil
	return err
}

// close unmounts it, even after an interrupt.
func (k *disk) close() error {
	ctx := context.Background()
	var err error
	if k.mounted {
		_, err = tool(ctx, "umount", k.dir)
		k.mounted = err != nil
	}
	if k.attached && err == nil {
		_, err = tool(ctx, "losetup", "--detach", k.loop)
		k.attached = err != nil
	}
	return err
}

// cut cuts the power: what the disk has not been given by now is lost.
func (k *disk) cut(ctx context.Context) error {
	if k.fs != "btrfs" {
		return k.on(func(fd int) error {
			how := uint32(noLogFlush)
			return ioctl(fd, shutdownCall, unsafe.Pointer(&how))
		})
	}
	// It knows no such call; what is in the file is what the disk was given.
	_, err := tool(ctx, "cp", "--sparse=always", k.image, k.image+".cut")
	return err
}

// restart mounts what a cut has left.
func (k *disk) restart(ctx context.Context) error {
	if k.fs != "btrfs" {
		if _, err := tool(ctx, "umount", k.dir); err != nil {
			return err
		}
		return k.mount(ctx)
	}
	if err := k.close(); err != nil {
		return err
	}
	if err := os.Rename(k.image+".cut", k.image); err != nil {
		return err
	}
	return k.mount(ctx)
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
			bad = errors.Join(bad, k.cut(ctx))
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
		if err := k.cut(ctx); err != nil {
			return err
		}
	}
	if err := k.restart(ctx); err != nil {
		return err
	}
	deletes := !t.s.viewer && !t.s.list && !t.s.purge && rand.IntN(2) == 0
	err = t.afterCut(ctx, dir, hit.Kind == "", deletes)
	if err != nil {
		err = fmt.Errorf("%s: power cut before call %d, %s (synced before call %d: %s):\n%w", t.s.name, n, hit, at, what, err)
	}
	return err
}

// cuts cuts the power of a file system n times, in scenarios whose name contains only, and gives
// what went wrong.
func (e *env) cuts(ctx context.Context, fs, only string, n int, unsynced bool) (tried int, findings []error, err error) {
	k, err := newDisk(ctx, e.work, fs)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, k.close()) }()
	var trials []*trial
	for _, s := range append(scenarios(e), listScenarios(e)...) {
		if s.repeated || s.undo || s.shares || !strings.Contains(s.name, only) {
			continue
		}
		s.name += " (on " + fs + ")"
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
