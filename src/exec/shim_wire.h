/* SPDX-License-Identifier: MIT */
/*
 * The messages between exec.c and the server in sluice-shim, over a pair of
 * stream sockets. Both programs are built together and run on one machine, so
 * the structs are sent as they are. To change them, count SHIM_WIRE_VERSION
 * up: exec_open() refuses a server of another version.
 *
 * 1. The server sends one shim_wire_hello.
 * 2. The client sends requests: one shim_wire_request, then texts with a NUL
 *    behind each, without gaps: dir, folder, prepare (only when has_prepare is
 *    1), `argc` arguments, `env_count` texts "NAME=value". `bytes` counts all
 *    of it, the struct included.
 * 3. The server sends a shim_wire_report for each: STARTED and later ENDED, or
 *    FAILED. Those of one request come in that order.
 * 4. When the client closes its end, the server ends; the shims live on.
 *
 * Neither side ever blocks on the socket: what cannot be sent waits in memory.
 *
 * Orders to a shim are signals with a value (sigqueue): SIGTERM cancels, SIGINT
 * stops, SIGUSR1 asks for a checkpoint; the value is made of the id of the
 * request. It tells an order from a stray `kill` by the session itself, and
 * from an order that comes too late, when the shim has another session.
 */
#ifndef EXEC_SHIM_WIRE_H
#define EXEC_SHIM_WIRE_H

#include <stdint.h>

enum {
    SHIM_WIRE_VERSION = 2,
    SHIM_WIRE_ORDER = 0x736c7563,
    SHIM_WIRE_REQUEST_MAX = 4 << 20, /* bytes of a whole request */
    SHIM_WIRE_TEXT_MAX = 128 << 10,  /* of one text: MAX_ARG_STRLEN */
};

#define SHIM_WIRE_MAGIC "sluice-shim"

struct shim_wire_hello {
    char magic[12];   /* SHIM_WIRE_MAGIC with its NUL */
    uint32_t version; /* SHIM_WIRE_VERSION */
    char program[16]; /* version of the program, for messages; NUL-padded */
};

struct shim_wire_request {
    uint32_t bytes;
    uint32_t argc; /* at least 1 */
    uint32_t env_count;
    uint32_t has_prepare; /* 0 or 1 */
    uint64_t id;
    int64_t timeout_ns; /* INT64_MAX: never, here and below */
    int64_t idle_ns;
    int64_t checkpoint_ns;
    int64_t grace_ns;
    uint64_t log_bytes_max; /* 0: no limit */
};

enum {
    SHIM_WIRE_STARTED = 1,
    SHIM_WIRE_FAILED = 2,
    SHIM_WIRE_ENDED = 3,
};

struct shim_wire_report {
    uint32_t type;
    int32_t error; /* errno: FAILED, and ENDED without having begun */
    uint64_t id;
    int64_t pid;
    uint64_t start_ticks;
};

/* The value of an order about the request with this id. */
static inline int shim_wire_order(uint64_t id)
{
    return (int)(uint32_t)(id ^ SHIM_WIRE_ORDER);
}

#endif /* EXEC_SHIM_WIRE_H */
