//go:build race

package feedconv

// bombScale divides the sizes of the bombs: the race detector makes everything
// some twenty times slower, and what is linear is so at any size.
const bombScale = 16
