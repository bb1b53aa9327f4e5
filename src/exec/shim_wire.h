/* SPDX-License-Identifier: MIT */
/*
 * Protocol between exec.c and the server in sluice-shim, over a pair of stream
 * sockets. Both programs are built together and run on one machine, so structs
 * are sent unchanged. To change them, increment SHIM_WIRE_VERSION: exec_open()
 * rejects a server of another version.
 *
 *  1. The server sends one shim_wire_hello.
 *  2. The client sends requests: one shim_wire_request, then NUL-terminated
 *     strings without gaps: dir, folder, prepare (only if has_prepare is 1),
 *     lease (only if has_lease is 1), spare (only if has_spare is 1), `argc`
 *     arguments, `env_count` strings "NAME=value". `bytes` counts all of it,
 *     including the struct.
 *  3. The server sends a shim_wire_report for each: STARTED and later ENDED, or
 *     FAILED. The reports of one request come in that order.
 *  4. When the client closes its end, the server exits; the shims keep running.
 *
 * Neither side ever blocks on the socket: unsent bytes wait in memory.
 *
 * Orders to a shim are signals with a value (sigqueue), composed of the order
 * and the id of the request. It distinguishes an order from a stray `kill` by
 * the session itself, and from an order that comes too late, when the shim has
 * another session. The signal is a real-time signal: none is dropped, and they
 * arrive in the order in which they were sent. A SIGTERM that is sent while
 * another is pending is dropped, and the pending one may be too late.
 */
#ifndef EXEC_SHIM_WIRE_H
#define EXEC_SHIM_WIRE_H

#include <stdint.h>

enum {
    SHIM_WIRE_VERSION = 7,
    SHIM_WIRE_REQUEST_MAX = 4 << 20, /* bytes of a whole request */
    SHIM_WIRE_TEXT_MAX = 128 << 10,  /* of one string: MAX_ARG_STRLEN */
};

/* The signal of an order: a number that no C library reserves. (SIGRTMIN
 * differs between C libraries, and the two programs may use different ones.) */
enum { SHIM_WIRE_SIGNAL = 40 };

enum shim_wire_order {
    SHIM_WIRE_CANCEL = 0,
    SHIM_WIRE_STOP = 1,
    SHIM_WIRE_CHECKPOINT = 2,
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
    uint8_t has_prepare; /* 0 or 1, as the next ones */
    uint8_t has_lease;
    uint8_t has_spare;
    uint8_t idle_ignores_cpu;
    uint64_t id;
    int64_t timeout_ns; /* INT64_MAX: never, here and below */
    int64_t idle_ns;
    int64_t checkpoint_ns;
    int64_t grace_ns;
    uint64_t log_bytes_max; /* 0: no limit */
    char nonce[40];         /* NUL-padded; "": none */
};

enum {
    SHIM_WIRE_STARTED = 1,
    SHIM_WIRE_FAILED = 2,
    SHIM_WIRE_ENDED = 3,
};

struct shim_wire_report {
    uint32_t type;
    int32_t error; /* errno: FAILED, and ENDED if nothing began */
    uint64_t id;
    int64_t pid;
    uint64_t start_ticks;
};

/* Return the value of an order about the request with this id. */
static inline int shim_wire_value(uint64_t id, enum shim_wire_order order)
{
    return (int)((uint32_t)(id ^ 0x736c7563) << 2 | (uint32_t)order);
}

#endif /* EXEC_SHIM_WIRE_H */
