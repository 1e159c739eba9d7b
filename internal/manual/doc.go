// Package manual tests what the pages in man/ promise: that they are sound mdoc,
// and that their examples run and print what they should. It holds no code.
package manual
