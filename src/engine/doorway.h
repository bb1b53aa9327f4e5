/* SPDX-License-Identifier: MIT */
/*
 * doorway: the unix socket on which the scheduler takes orders.
 *
 * One JSON object per line comes in, one per line goes out, in the order of
 * the answers. The socket lies in the directory of the store (mode 0600), and
 * only processes of the same user, or root's, are listened to.
 */
#ifndef ENGINE_DOORWAY_H
#define ENGINE_DOORWAY_H

#include "base/diag.h"

#include <stdint.h>

struct uv_loop_s;
struct doorway;

/* An order: `id` names it in doorway_answer(), and is not 0. */
typedef void (*doorway_order_fn)(void *ctx,
                                 uint64_t id,
                                 const char *who,
                                 const char *json);

/* Listen; what an earlier process left there is replaced. */
MUST_USE enum err doorway_open(struct doorway **out,
                               struct uv_loop_s *loop,
                               const char *dir,
                               doorway_order_fn fn,
                               void *ctx,
                               struct diag *diag);

/* Close all connections. Its memory is given back by the loop's next passes.
 * NULL is allowed. */
void doorway_close(struct doorway *doorway);

/* Send an answer; without effect when its client is gone. */
void doorway_answer(struct doorway *doorway, uint64_t id, const char *json);

#endif /* ENGINE_DOORWAY_H */
