package cmdline

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// TestReadAll: input that ends within the limit is read, and longer input is an error.
func TestReadAll(t *testing.T) {
	if b, err := ReadAll(t.Context(), strings.NewReader("12345"), 5); err != nil || string(b) != "12345" {
		t.Errorf("%q, %v", b, err)
	}
	var size *SizeError
	if b, err := ReadAll(t.Context(), strings.NewReader("123456"), 5); !errors.As(err, &size) || b != nil {
		t.Errorf("%q, %v", b, err)
	}
}

// start runs tiny with words, in a process group of its own, and returns when tiny has reported
// that it reads.
func start(t *testing.T, in io.Reader, words ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, words...)
	cmd.Args[0] = "tiny" // see TestMain
	cmd.Env = append(os.Environ(), "TINY=1", "GORACE=atexit_sleep_ms=0")
	cmd.Stdin = in
	var out bytes.Buffer
	cmd.Stdout = &out
	msg, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if line, err := bufio.NewReader(msg).ReadString('\n'); err != nil || line != "reads\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return cmd, &out
}

// TestSignalWhileReading: a command that reads ends at the first signal, although its input stays
// open, and uses none of the input.
func TestSignalWhileReading(t *testing.T) {
	for _, words := range [][]string{{"whole"}, {"list", "-"}} {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			if signal.Ignored(sig) {
				continue // as under nohup, when this signal does not end the read
			}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd, out := start(t, r, words...)
			r.Close()
			if _, err := w.WriteString("first half"); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			w.Close()
			if got := cmd.ProcessState.ExitCode(); got != 128+int(sig) || out.Len() > 0 {
				t.Errorf("%q, %v: status %d, %q", words, sig, got, out)
			}
		}
	}
}

// TestWriterIsStoppedToo: if ^C ends the writer of the input, too, the end of the input does not
// make it complete.
func TestWriterIsStoppedToo(t *testing.T) {
	for range 50 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd, out := start(t, r, "whole")
		r.Close()
		if _, err := w.WriteString("first half"); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		w.Close() // at once
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != 130 || out.Len() > 0 {
			t.Fatalf("status %d, %q", got, out)
		}
	}
}
