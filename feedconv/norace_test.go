//go:build !race

package feedconv

// bombScale divides the sizes of the bombs, where that must be.
const bombScale = 1
