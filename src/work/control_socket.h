/* SPDX-License-Identifier: MIT */
/*
 * control_socket: a Unix socket on which a scheduler takes requests, and a
 * worker those of its sessions.
 *
 * One JSON object per line comes in, one per line goes out, in the order of the
 * answers. The socket is in a directory of the home (mode 0600), and accepts
 * only processes of the same user or of root.
 */
#ifndef WORK_CONTROL_SOCKET_H
#define WORK_CONTROL_SOCKET_H

#include "base/diag.h"

#include <stdint.h>

/* Longest request accepted, in bytes: a plan of the largest size fits. */
enum { REQUEST_BYTES_MAX = 64 << 20 };

struct uv_loop_s;
struct control_socket;

/* A request: `id` names it in control_socket_answer(), and is not 0. */
typedef void (*control_socket_request_fn)(void *ctx,
                                          uint64_t id,
                                          const char *who,
                                          const char *json);

/* Listen, and replace the socket that an earlier process left. */
MUST_USE enum err control_socket_open(struct control_socket **out,
                                      struct uv_loop_s *loop,
                                      const char *dir,
                                      control_socket_request_fn fn,
                                      void *ctx,
                                      struct diag *diag);

/* Close all connections. The next iterations of the loop free the memory. NULL
 * is allowed. */
void control_socket_close(struct control_socket *control);

/* Send an answer; no effect if its client is gone. */
void control_socket_answer(struct control_socket *control,
                           uint64_t id,
                           const char *json);

#endif /* WORK_CONTROL_SOCKET_H */
