// Package http is the room of requests and of servers: messages, politeness, limits, listening. It may
// import text and files.
package http
