//go:build linux && (amd64 || arm64)

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/lektordir/lektor/internal/testkit/must"
	"golang.org/x/sys/unix"
)

// The supervised program has a seccomp filter. Before each call that touches the file system, it
// asks this process, in one order for all threads. The kernel carries out the answer: the call
// continues or fails, or the program is killed.

// op is one call that touches the lektor-dir.
type op struct {
	Kind  string // name of the call; openat that may create a file is "create"
	Path  string // relative to the lektor-dir; the new path of a rename
	From  string // old path of a rename
	Write bool   // it changes something, or makes a change durable
	Len   int    // bytes of a write

	// The other fields are set for calls that change something, so that they can be repeated.
	Flags uint64    // flags of open, rename and unlink
	Data  []byte    // bytes of a write
	Off   int64     // where a write begins, -1 for the end; length of a truncate
	Text  string    // target of a symbolic link
	Time  time.Time // mtime set by utimes; zero: not changed
}

func (o op) String() string {
	if o.From != "" {
		return o.Kind + " " + o.From + " -> " + o.Path
	}
	return o.Kind + " " + o.Path
}

// verdict is the answer for a call.
type verdict struct {
	kill  bool
	errno unix.Errno
	short bool // write only half
	done  bool // succeed without effect
}

// outcome is the calls of a program, its output and its status.
type outcome struct {
	ops            []op
	stdout, stderr string
	status         int // -1 if it was killed
}

// place holds the numbers of the arguments that name a file: the descriptor of the directory or
// of the file, and the path. Either may be missing.
type place struct{ fd, path int }

const none = -1

var (
	nowhere  = place{none, none} // or, for a sync, everywhere
	byFD     = place{0, none}
	byPath   = place{none, 0}
	byFDPath = place{0, 1}
)

type call struct {
	name     string
	to, from place
	write    bool
}

// calls are the calls of Go and its packages. C libraries make older calls, which are not
// recorded; the model then finds that the recording differs from the directory.
var calls = map[int]call{
	unix.SYS_MKDIRAT:    {"mkdir", byFDPath, nowhere, true},
	unix.SYS_OPENAT:     {"open", byFDPath, nowhere, false},
	unix.SYS_WRITE:      {"write", byFD, nowhere, true},
	unix.SYS_PWRITE64:   {"pwrite", byFD, nowhere, true},
	unix.SYS_SYMLINKAT:  {"symlink", place{1, 2}, nowhere, true},
	unix.SYS_RENAMEAT:   {"rename", place{2, 3}, byFDPath, true},
	unix.SYS_RENAMEAT2:  {"rename", place{2, 3}, byFDPath, true},
	unix.SYS_LINKAT:     {"link", place{2, 3}, byFDPath, true},
	unix.SYS_UNLINKAT:   {"unlink", byFDPath, nowhere, true},
	unix.SYS_UTIMENSAT:  {"utimes", byFDPath, nowhere, true},
	unix.SYS_FCHMODAT:   {"chmod", byFDPath, nowhere, true},
	unix.SYS_FCHMOD:     {"chmod", byFD, nowhere, true},
	unix.SYS_FTRUNCATE:  {"truncate", byFD, nowhere, true},
	unix.SYS_TRUNCATE:   {"truncate", byPath, nowhere, true},
	unix.SYS_FALLOCATE:  {"fallocate", byFD, nowhere, true},
	unix.SYS_FSYNC:      {"fsync", byFD, nowhere, true},
	unix.SYS_FDATASYNC:  {"fsync", byFD, nowhere, true},
	unix.SYS_SYNCFS:     {"syncfs", byFD, nowhere, true},
	unix.SYS_SYNC:       {"sync", nowhere, nowhere, true},
	unix.SYS_READ:       {"read", byFD, nowhere, false},
	unix.SYS_GETDENTS64: {"readdir", byFD, nowhere, false},
	unix.SYS_FLOCK:      {"flock", byFD, nowhere, false},
	unix.SYS_STATFS:     {"statfs", byPath, nowhere, false},
}

const helperEnv = "LEKTOR_FAULTS_HELPER"

// helper runs in a copy of this program, which then executes the program in the arguments under
// the filter.
func helper() {
	if os.Getenv(helperEnv) == "" {
		return
	}
	os.Unsetenv(helperEnv)
	runtime.LockOSThread()
	syscall.CloseOnExec(3)
	fd, err := install()
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(111)
	}
	if err := unix.Sendmsg(3, []byte{1}, unix.UnixRights(fd), nil, 0); err != nil {
		os.Exit(112)
	}
	err = syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	fmt.Fprintln(os.Stderr, "faults:", err)
	os.Exit(113)
}

// install installs the filter for the calling thread, and returns the descriptor of its
// notifications.
func install() (int, error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("no_new_privs: %w", err)
	}
	numbers := make([]int, 0, len(calls))
	for n := range calls {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}}
	for i, n := range numbers {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(n),
			Jt: uint8(len(numbers) - i)})
	}
	filter = append(filter,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
		uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return 0, fmt.Errorf("seccomp: %w", errno)
	}
	return int(fd), nil
}

type notification struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

type response struct {
	id    uint64
	val   int64
	err   int32
	flags uint32
}

func ioctl(fd int, req uint, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(req), uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}

// errUnsupported is the reason why programs cannot be supervised here.
var errUnsupported = errors.New("this system lets no program supervise another by seccomp")

// supervise runs a program on a lektor-dir, and calls decide for each call that touches it. Calls
// that only read are included if reads is set. decide runs in one goroutine.
func supervise(ctx context.Context, dir string, reads bool, stdin string, decide func(n int, o op) verdict,
	argv ...string) (*outcome, error) {
	return supervision{dir: dir, reads: reads, stdin: stdin, decide: decide}.run(ctx, argv...)
}

// supervision are the options of a supervised run.
type supervision struct {
	dir   string // the lektor-dir
	reads bool   // include calls that read
	// sends includes writes to sockets, with kind "send", and prints includes writes to standard
	// output, with kind "print". These calls are not counted and always continue: n is the number
	// of the call before.
	sends, prints bool
	stdin         string
	decide        func(n int, o op) verdict
}

// run runs the program until it ends, but at most for some minutes. If ctx ends, the program is
// killed.
func (v supervision) run(ctx context.Context, argv ...string) (o *outcome, err error) {
	defer must.Catch(&err)
	pair := must.Get(unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
	theirs := os.NewFile(uintptr(pair[1]), "socket")
	defer unix.Close(pair[0])
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", argv...)
	cmd.Env = append(os.Environ(), helperEnv+"=1", "LEKTORDIR="+v.dir)
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stdin = strings.NewReader(v.stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Start()
	theirs.Close()
	must.Do(err)
	listener, err := receive(pair[0])
	if err != nil {
		werr := cmd.Wait()
		return nil, fmt.Errorf("%w: %s (%w)", errUnsupported, strings.TrimSpace(stderr.String()),
			errors.Join(err, werr))
	}
	s := &supervisor{supervision: v, listener: listener, pid: cmd.Process.Pid}
	err = s.loop(ctx)
	unix.Close(listener)
	if err != nil {
		cmd.Process.Kill()
	}
	werr := cmd.Wait()
	o = &outcome{ops: s.ops, stdout: stdout.String(), stderr: stderr.String(), status: cmd.ProcessState.ExitCode()}
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("it did not end: %w (%v)", context.Cause(ctx), werr)
	}
	return o, err
}

// receive receives the descriptor of notifications from the helper.
func receive(socket int) (listener int, err error) {
	defer must.Catch(&err)
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := unix.Recvmsg(socket, make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
	for err == unix.EINTR {
		n, oobn, _, _, err = unix.Recvmsg(socket, make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
	}
	if must.Do(err); n == 0 {
		return 0, io.EOF
	}
	msgs := must.Get(unix.ParseSocketControlMessage(oob[:oobn]))
	if len(msgs) == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	return must.Get(unix.ParseUnixRights(&msgs[0]))[0], nil
}

type supervisor struct {
	supervision
	listener int
	pid      int
	ops      []op
}

func (s *supervisor) loop(ctx context.Context) (err error) {
	defer must.Catch(&err)
	for {
		p := []unix.PollFd{{Fd: int32(s.listener), Events: unix.POLLIN}}
		_, err := unix.Poll(p, 1000)
		if err != nil && err != unix.EINTR {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if p[0].Revents&unix.POLLIN == 0 {
			if p[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0 {
				return nil
			}
			continue
		}
		var n notification
		if err := ioctl(s.listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); err != nil {
			if err == unix.EINTR || err == unix.ENOENT { // the thread died meanwhile
				continue
			}
			return err
		}
		r := response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		if o, ok := s.out(&n); ok {
			s.decide(len(s.ops), o)
		} else if o, ok := s.op(&n); ok {
			s.ops = append(s.ops, o)
			v := s.decide(len(s.ops), o)
			switch {
			case v.kill:
				// All threads end before they return from their calls.
				must.Do(unix.Kill(s.pid, unix.SIGKILL))
				continue
			case v.errno != 0:
				r.flags, r.err = 0, -int32(v.errno)
			case v.done:
				r.flags = 0
			case v.short && o.Len > 1:
				done, err := s.half(&n)
				must.That(err, "half of a write")
				r.flags, r.val = 0, int64(done)
			}
		}
		if err := ioctl(s.listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)); err != nil &&
			err != unix.ENOENT {
			return err
		}
	}
}

// out returns a write to a socket or to standard output, if such writes are included.
func (s *supervisor) out(n *notification) (op, bool) {
	o := op{Write: true, Len: int(n.args[2])}
	switch {
	case int(n.nr) != unix.SYS_WRITE:
		return op{}, false
	case s.sends && strings.HasPrefix(s.fd(n, n.args[0]), "socket:"):
		o.Kind = "send"
	case s.prints && n.args[0] == 1:
		o.Kind = "print"
	default:
		return op{}, false
	}
	s.details(n, &o)
	return o, true
}

// op returns a call, and whether it touches the lektor-dir.
func (s *supervisor) op(n *notification) (op, bool) {
	c := calls[int(n.nr)]
	o := op{Kind: c.name, Write: c.write}
	switch o.Kind {
	case "open":
		if n.args[2]&(unix.O_CREAT|unix.O_TRUNC) != 0 {
			o.Kind, o.Write = "create", true
		}
	case "write", "pwrite":
		o.Len = int(n.args[2])
	case "flock":
		if n.args[1]&unix.LOCK_UN != 0 {
			return o, false // cannot fail
		}
	}
	if !o.Write && !s.reads {
		return o, false
	}
	to := s.dir
	if c.to != nowhere {
		to = s.path(n, c.to)
	}
	var ok bool
	if o.Path, ok = s.inside(to); !ok {
		return o, false
	}
	if c.from != nowhere {
		o.From, _ = s.inside(s.path(n, c.from))
	}
	if o.Write {
		s.details(n, &o)
	}
	return o, true
}

// details adds the fields that are needed to repeat a call.
func (s *supervisor) details(n *notification, o *op) {
	switch a := n.args; int(n.nr) {
	case unix.SYS_OPENAT:
		o.Flags = a[2]
	case unix.SYS_RENAMEAT2:
		o.Flags = a[4]
	case unix.SYS_UNLINKAT:
		o.Flags = a[2]
	case unix.SYS_WRITE, unix.SYS_PWRITE64:
		o.Data = make([]byte, a[2])
		if len(o.Data) > 0 {
			got, _ := s.memory(n, o.Data, a[1])
			o.Data = o.Data[:max(got, 0)]
		}
		o.Off = int64(a[3])
		if int(n.nr) == unix.SYS_WRITE {
			o.Off = s.offset(n, a[0])
		}
	case unix.SYS_FTRUNCATE, unix.SYS_TRUNCATE:
		o.Off = int64(a[1])
	case unix.SYS_SYMLINKAT:
		o.Text = s.text(n, a[0])
	case unix.SYS_UTIMENSAT:
		o.Time = s.time(n, a[2])
	}
}

// offset returns the position of the next write to a file, or -1 for the end.
func (s *supervisor) offset(n *notification, fd uint64) int64 {
	info, _ := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", n.pid, int32(fd)))
	var pos int64
	var flags uint64
	if _, err := fmt.Sscanf(string(info), "pos: %d\nflags: %o", &pos, &flags); err != nil || flags&unix.O_APPEND != 0 {
		return -1
	}
	return pos
}

// time reads the second of two times, the modification time.
func (s *supervisor) time(n *notification, addr uint64) time.Time {
	var ts [2]unix.Timespec
	b := unsafe.Slice((*byte)(unsafe.Pointer(&ts)), unsafe.Sizeof(ts))
	if addr == 0 {
		return time.Now()
	}
	_, err := s.memory(n, b, addr)
	switch {
	case err != nil || ts[1].Nsec == unix.UTIME_OMIT:
		return time.Time{}
	case ts[1].Nsec == unix.UTIME_NOW:
		return time.Now()
	}
	return time.Unix(ts[1].Unix())
}

func (s *supervisor) inside(path string) (string, bool) {
	if path == s.dir {
		return ".", true
	}
	return strings.CutPrefix(path, s.dir+"/")
}

func (s *supervisor) fd(n *notification, fd uint64) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", n.pid, int32(fd)))
	return strings.TrimSuffix(path, " (deleted)")
}

// path returns the path of a call's file.
func (s *supervisor) path(n *notification, at place) string {
	if at.path == none || at.fd != none && n.args[at.path] == 0 {
		return s.fd(n, n.args[at.fd])
	}
	path := s.text(n, n.args[at.path])
	switch {
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	case at.fd == none || int32(n.args[at.fd]) == unix.AT_FDCWD:
		cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", n.pid))
		return filepath.Join(cwd, path)
	}
	return filepath.Join(s.fd(n, n.args[at.fd]), path)
}

// text reads a string from the program's memory, page by page.
func (s *supervisor) text(n *notification, addr uint64) string {
	var out []byte
	for len(out) < unix.PathMax {
		page := make([]byte, 4096-addr%4096)
		got, err := s.memory(n, page, addr)
		if i := bytes.IndexByte(page[:got], 0); i >= 0 {
			return string(append(out, page[:i]...))
		}
		if err != nil || got == 0 {
			break
		}
		out = append(out, page[:got]...)
		addr += uint64(got)
	}
	return string(out)
}

func (s *supervisor) memory(n *notification, b []byte, addr uint64) (int, error) {
	local := []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}
	got, err := unix.ProcessVMReadv(int(n.pid), local, []unix.RemoteIovec{{Base: uintptr(addr), Len: len(b)}}, 0)
	return max(got, 0), err // -1 if the process was killed meanwhile
}

// half makes the first half of a write for the program.
func (s *supervisor) half(n *notification) (done int, err error) {
	defer must.Catch(&err)
	pidfd := must.Get(unix.PidfdOpen(s.pid, 0))
	defer unix.Close(pidfd)
	fd := must.Get(unix.PidfdGetfd(pidfd, int(n.args[0]), 0))
	defer unix.Close(fd)
	b := make([]byte, n.args[2]/2)
	must.Get(s.memory(n, b, n.args[1]))
	if calls[int(n.nr)].name == "pwrite" {
		return unix.Pwrite(fd, b, int64(n.args[3]))
	}
	return unix.Write(fd, b)
}

// supported returns the reason why programs cannot be supervised, or nil.
func supported(ctx context.Context) error {
	if binary.Size(notification{}) != 80 || binary.Size(response{}) != 24 {
		return errors.New("the layout of the kernel's structures is wrong")
	}
	path, err := exec.LookPath("true")
	if err != nil {
		return err
	}
	o, err := supervise(ctx, "/nonexistent", true, "", func(int, op) verdict { return verdict{} }, path)
	if err == nil && o.status != 0 {
		err = fmt.Errorf("%w: %q", errUnsupported, o.stderr)
	}
	return err
}
