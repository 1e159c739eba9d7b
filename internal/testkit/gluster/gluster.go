//go:build linux

// Package gluster makes a replicated GlusterFS volume of two bricks on this machine, for tests.
// Its daemons run in their own namespaces for network, processes and mounts. So no other process
// sees the volume, and its addresses are on its own loopback interface. When the program ends in
// any way, the kernel ends the daemons and unmounts the volume. The package needs root, and
// Debian's glusterfs-server.
package gluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Supported returns the reason why no volume can be made, or nil.
func Supported() error {
	if os.Geteuid() != 0 {
		return errors.New("a volume of GlusterFS needs root")
	}
	for _, program := range []string{"glusterd", "glusterfsd", "gluster", "glusterfs", "unshare", "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("GlusterFS is not installed: %w", err)
		}
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		return err
	}
	if out, err := exec.Command("unshare", append(namespaces(), "true")...).CombinedOutput(); err != nil {
		return fmt.Errorf("there are no namespaces: unshare: %w: %s", err, out)
	}
	return nil
}

func namespaces() []string {
	return []string{"--net", "--mount", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc"}
}

// inside is the variable that is set for a program in these namespaces.
const inside = "LEKTOR_GLUSTER_INSIDE"

// Inside reports whether this program runs in namespaces in which it can make a volume.
func Inside() bool { return os.Getenv(inside) != "" && os.Getpid() == 1 }

// Again returns a command that runs this program again, with these arguments, in namespaces in
// which it can make a volume. There [Inside] returns true.
func Again(ctx context.Context, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "unshare", append(append(namespaces(), self), args...)...)
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd, nil
}

// Main runs this program again with its arguments, in namespaces in which it can make a volume,
// and returns its status. If no volume can be made, it prints the reason and returns 0.
func Main(ctx context.Context) int {
	if err := Supported(); err != nil {
		fmt.Println("skipped, on GlusterFS:", err)
		return 0
	}
	cmd, err := Again(ctx, os.Args[1:]...)
	if err == nil {
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		err = cmd.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "on GlusterFS:", err)
		return 1
	}
	return 0
}

// Volume is a volume.
type Volume struct {
	dir    string
	mounts []string
}

// address is the address of the server, which does not accept 127.0.0.1.
const address = "127.0.0.2"

const settings = `volume management
    type mgmt/glusterd
    option working-directory %[1]s/state
    option run-directory %[1]s/run
    option glusterd-sockfile %[1]s/socket
    option transport-type socket
    option transport.address-family inet
    option transport.socket.listen-port 24007
    option transport.socket.read-fail-log off
    option ping-timeout 0
    option event-threads 1
    option max-port 60999
end-volume
`

// New makes a volume with its files in dir, an empty directory.
func New(ctx context.Context, dir string) (*Volume, error) {
	if !Inside() {
		return nil, errors.New("a volume can be made only in the namespaces of Again")
	}
	v := &Volume{dir: dir}
	for _, name := range []string{"state", "run", "log", "brick1", "brick2"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	if err := loopback(); err != nil {
		return nil, fmt.Errorf("the loopback interface: %w", err)
	}
	// Sockets and logs have fixed places.
	for _, place := range []string{"/run", "/var/log/glusterfs"} {
		if err := unix.Mount("private", place, "tmpfs", 0, ""); err != nil {
			return nil, fmt.Errorf("mount %s: %w", place, err)
		}
	}
	conf := filepath.Join(dir, "glusterd.vol")
	if err := errors.Join(os.Mkdir("/run/gluster", 0o700), os.WriteFile(conf, fmt.Appendf(nil, settings, dir),
		0o600)); err != nil {
		return nil, err
	}
	if _, err := run(ctx, "glusterd", "-f", conf, "-p", dir+"/pid", "-l", dir+"/log/glusterd"); err != nil {
		return nil, err
	}
	create := []string{"volume", "create", "lektor", "replica", "2", address + ":" + dir + "/brick1", address + ":" +
		dir + "/brick2", "force"}
	if err := v.until(ctx, create...); err != nil {
		return nil, err
	}
	return v, v.until(ctx, "volume", "start", "lektor")
}

// until repeats a command of the volume's management until it succeeds, since the management may
// still be starting.
func (v *Volume) until(ctx context.Context, args ...string) error {
	var err error
	for end := time.Now().Add(time.Minute); ctx.Err() == nil && time.Now().Before(end); {
		if _, err = v.manage(ctx, args...); err == nil {
			return nil
		}
	}
	return errors.Join(err, ctx.Err())
}

// manage runs a command of the volume's management, and returns its output.
func (v *Volume) manage(ctx context.Context, args ...string) (string, error) {
	return run(ctx, append([]string{"gluster", "--glusterd-sock=" + v.dir + "/socket", "--mode=script"}, args...)...)
}

// Count makes the replicas count their calls, which makes them slower.
func (v *Volume) Count(ctx context.Context) error {
	_, err := v.manage(ctx, "volume", "profile", "lektor", "start")
	return err
}

// Calls returns the number of calls of each kind, for example "LOOKUP", that the first replica
// got since the last call of Calls.
func (v *Volume) Calls(ctx context.Context) (map[string]int, error) {
	out, err := v.manage(ctx, "volume", "profile", "lektor", "info", "incremental")
	if err != nil {
		return nil, err
	}
	calls, replicas := map[string]int{}, 0
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "Brick:") {
			replicas++
		}
		// The percentage, three latencies with their units, the number, the name.
		f := strings.Fields(line)
		if len(f) != 9 || replicas != 1 {
			continue
		}
		if n, err := strconv.Atoi(f[7]); err == nil {
			calls[f[8]] = n
		}
	}
	return calls, nil
}

// Times returns the processor time that the mounts and the replicas of the volume have
// used so far.
func (v *Volume) Times() (mounts, replicas time.Duration, err error) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		argv, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(path), "stat"))
		// The fields follow the name, which may contain any characters.
		_, rest, ok := bytes.Cut(stat, []byte(") "))
		f := bytes.Fields(rest)
		if err != nil || !ok || len(f) < 13 {
			continue
		}
		user, err1 := strconv.Atoi(string(f[11]))
		system, err2 := strconv.Atoi(string(f[12]))
		if err := errors.Join(err1, err2); err != nil {
			return 0, 0, err
		}
		const tick = time.Second / 100 // the unit of times in /proc
		switch spent := time.Duration(user+system) * tick; {
		case bytes.Contains(argv, []byte("--brick-name\x00"+v.dir)):
			replicas += spent
		case bytes.Contains(argv, []byte("--volfile-id=lektor\x00")):
			mounts += spent
		}
	}
	return mounts, replicas, err
}

// Mount mounts the volume again, as another machine would, with a separate cache.
func (v *Volume) Mount(ctx context.Context, at string) error {
	if err := os.MkdirAll(at, 0o777); err != nil {
		return err
	}
	v.mounts = append(v.mounts, at)
	_, err := run(ctx, "glusterfs", "--volfile-server="+address, "--volfile-id=lektor",
		"--log-file="+v.dir+"/log/"+filepath.Base(at), at)
	return err
}

// Close unmounts the volume, so that the directory can be removed. The daemons end
// with the program.
func (v *Volume) Close() {
	for _, at := range v.mounts {
		_ = unix.Unmount(at, unix.MNT_DETACH)
	}
}

func run(ctx context.Context, argv ...string) (string, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second // daemons may keep the output open
	if err := cmd.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(out.String()))
	}
	return out.String(), nil
}

// loopback brings the loopback interface up, which is down in a new namespace.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}
