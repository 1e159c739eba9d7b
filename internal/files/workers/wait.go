package workers

import (
	"context"
	"time"
)

// Sleep waits, unless ctx ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// The pauses of [WhileBusy], and the number of them that is ten seconds.
const (
	busyPause = 100 * time.Millisecond
	Patience  = 100
)

// WhileBusy calls take again while another process holds a lock, that is, while it returns an error
// that is busy. It sleeps before each further call, at most pauses times; 0 means no limit. It calls
// waits, if not nil, before the first pause.
func WhileBusy(ctx context.Context, sleep func(context.Context, time.Duration) error, pauses int, waits func(),
	busy func(error) bool, take func() error) error {
	for n := 0; ; n++ {
		err := take()
		if !busy(err) || pauses > 0 && n == pauses {
			return err
		}
		if n == 0 && waits != nil {
			waits()
		}
		if err := sleep(ctx, busyPause); err != nil {
			return err
		}
	}
}
