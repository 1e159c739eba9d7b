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

	"github.com/lektordir/lektor/internal/testkit/must"
	"golang.org/x/sys/unix"
)

// These are from the kernel's ext4.h and xfs_fs.h. The file system stops at once, and unwritten
// data of its journal is lost, as in a power failure.
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

// disks are the supported file systems, with their minimum sizes.
var disks = map[string]struct {
	size int64
	mkfs []string
}{
	"ext4":  {64 << 20, []string{"mkfs.ext4", "-q", "-F"}},
	"xfs":   {320 << 20, []string{"mkfs.xfs", "-q", "-f"}},
	"btrfs": {256 << 20, []string{"mkfs.btrfs", "-q", "-f"}},
}

// errNoDisk lists the requirements for a disk.
var errNoDisk = errors.New("power cuts need root, loop devices and the file system's mkfs")

func tool(ctx context.Context, argv ...string) string {
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		must.Fail("%s: %w: %s", strings.Join(argv, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func newDisk(ctx context.Context, work, fs string) *disk {
	if os.Geteuid() != 0 {
		must.Fail("%w: not root", errNoDisk)
	}
	kind, ok := disks[fs]
	if !ok {
		must.Fail("power is cut on ext4, xfs and btrfs, not on %q", fs)
	}
	k := &disk{fs: fs, image: filepath.Join(work, "disk-"+fs), dir: filepath.Join(work, "mnt-"+fs)}
	must.Do(os.WriteFile(k.image, nil, 0o600))
	must.Do(os.Truncate(k.image, kind.size))
	must.Do(os.Mkdir(k.dir, 0o777))
	err := must.Run(func() {
		tool(ctx, append(kind.mkfs, k.image)...)
		k.mount(ctx)
	})
	if err != nil {
		must.Run(k.close)
		must.Fail("%w: %w", errNoDisk, err)
	}
	return k
}

func (k *disk) mount(ctx context.Context) {
	if !k.attached {
		k.loop = tool(ctx, "losetup", "--find", "--show", k.image)
		k.attached = true
	}
	tool(ctx, "mount", "-t", k.fs, k.loop, k.dir)
	k.mounted = true
}

func (k *disk) unmount(ctx context.Context) {
	tool(ctx, "umount", k.dir)
	k.mounted = false
}

// close unmounts the disk, even after an interrupt.
func (k *disk) close() {
	ctx := context.Background()
	if k.mounted {
		k.unmount(ctx)
	}
	if k.attached {
		tool(ctx, "losetup", "--detach", k.loop)
		k.attached = false
	}
}

// cut cuts the power: data that was not written to the disk is lost.
func (k *disk) cut(ctx context.Context) {
	if k.fs == "btrfs" {
		// The file system has no such call. The image has the written data.
		tool(ctx, "cp", "--sparse=always", k.image, k.image+".cut")
		return
	}
	k.on(func(fd int) error {
		how := uint32(noLogFlush)
		return ioctl(fd, shutdownCall, unsafe.Pointer(&how))
	})
}

// restart mounts the disk after a cut.
func (k *disk) restart(ctx context.Context) {
	if k.fs == "btrfs" {
		k.close()
		must.Do(os.Rename(k.image+".cut", k.image))
	} else {
		k.unmount(ctx)
	}
	k.mount(ctx)
}

// on calls f with a descriptor of the file system.
func (k *disk) on(f func(fd int) error) {
	fd := must.Get(unix.Open(k.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0))
	defer unix.Close(fd)
	must.Do(f(fd))
}

func (k *disk) sync() { k.on(unix.Syncfs) }

// commit syncs an unrelated file. The sync writes the file system's journal, and so all names, but
// not the data of other files.
func (k *disk) commit() {
	f := must.Get(os.OpenFile(filepath.Join(k.dir, "bystander"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666))
	defer f.Close()
	must.Get(f.WriteString("x"))
	must.Do(f.Sync())
}

// cut cuts the power before a call of the command, and checks the disk afterwards. Some calls
// before, another program may have synced the disk or a file of its own, so that a part of the
// command's unsynced changes is durable. With unsynced, the command's syncs succeed without
// effect.
func (t *trial) cut(ctx context.Context, k *disk, unsynced bool) (err error) {
	dir := filepath.Join(k.dir, fmt.Sprintf("dir-%d", t.e.serial.Add(1)))
	defer must.Catch(&err)
	copyTree(t.template, dir)
	defer os.RemoveAll(dir)
	k.sync()
	n := 1 + rand.IntN(len(t.ops)+1) // the greatest number means after its end
	at, what, sync := -1, "", func() {}
	switch rand.IntN(4) {
	case 0:
		at, what, sync = 1+rand.IntN(n), "all", k.sync
	case 1, 2:
		at, what, sync = n-rand.IntN(min(n, 10)), "another file", k.commit
	}
	var hit op
	var bad error
	argv := t.s.command(t.e, dir)
	run, err := supervise(ctx, dir, false, t.s.stdin, func(i int, o op) verdict {
		if i == at {
			bad = errors.Join(bad, must.Run(sync))
		}
		if i == n {
			hit = o
			bad = errors.Join(bad, must.Run(func() { k.cut(ctx) }))
			return verdict{kill: true}
		}
		if unsynced {
			return syncsSkipped(o)
		}
		return verdict{}
	}, argv...)
	must.Do(errors.Join(err, bad))
	if hit.Kind == "" { // this run made fewer calls
		k.cut(ctx)
	}
	k.restart(ctx)
	if !t.s.viewer {
		var uniques []string
		for line := range strings.Lines(run.stdout) {
			line, whole := strings.CutSuffix(line, "\n")
			if unique, ok := printedUnique(line); ok && whole {
				uniques = append(uniques, unique)
			}
		}
		must.That(promised(uniques, dir), "%s: power cut before call %d, %s (synced before call %d: %s)", t.s.name, n,
			hit, at, what)
	}
	deletes := !t.s.viewer && !t.s.list && !t.s.purge && rand.IntN(2) == 0
	if err := t.afterCut(ctx, dir, hit.Kind == "", deletes); err != nil {
		return fmt.Errorf("%s: power cut before call %d, %s (synced before call %d: %s):\n%w", t.s.name, n, hit, at,
			what, err)
	}
	return nil
}

// cuts cuts the power of a file system n times, in scenarios whose names contain only, and
// returns the failures.
func (e *env) cuts(ctx context.Context, fs, only string, n int, unsynced bool) (tried int, findings []error,
	err error) {
	defer must.Catch(&err)
	k := newDisk(ctx, e.work, fs)
	defer k.close()
	var trials []*trial
	for _, s := range append(scenarios(e), listScenarios(e)...) {
		if s.repeated || s.undo || s.shares || s.saves != nil || !strings.Contains(s.name, only) {
			continue
		}
		s.name += " (on " + fs + ")"
		trials = append(trials, must.Get(newTrial(ctx, e, s)))
	}
	for ; tried < n && len(trials) > 0; tried++ {
		must.Do(ctx.Err())
		if err := trials[tried%len(trials)].cut(ctx, k, unsynced); err != nil {
			findings = append(findings, err)
			if !k.mounted {
				return tried + 1, findings, nil
			}
		}
	}
	return tried, findings, nil
}
