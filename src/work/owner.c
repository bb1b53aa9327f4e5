/* SPDX-License-Identifier: MIT */
#include "work/owner.h"

#include "base/invariant.h"
#include "exec/attempt.h"
#include "exec/exec.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

struct store_owner owner_self(void)
{
    struct store_owner self = {.pid = getpid()};
    self.start_ticks = attempt_start_ticks(self.pid);
    attempt_boot_id(self.boot_id);
    if (gethostname(self.host, sizeof(self.host) - 1) != 0) {
        (void)snprintf(self.host, sizeof(self.host), "?");
    }
    INVARIANT(self.pid > 0);
    return self;
}

long long owner_process(const struct store_owner *owner)
{
    return (long long)owner->pid;
}

bool owner_is_same(const struct store_owner *a, const struct store_owner *b)
{
    return a->pid == b->pid && a->start_ticks == b->start_ticks &&
           strcmp(a->boot_id, b->boot_id) == 0;
}

bool owner_is_stopped(const struct store_owner *owner)
{
    struct store_owner self = owner_self();
    if (strcmp(self.boot_id, owner->boot_id) != 0 ||
        strcmp(self.host, owner->host) != 0) {
        return false;
    }
    char state = attempt_process_state(owner->pid);
    return state == 'T' || state == 't';
}

enum err owner_kill(const struct store_owner *owner, struct diag *diag)
{
    struct store_owner self = owner_self();
    INVARIANT(!owner_is_same(owner, &self));
    if (strcmp(owner->host, self.host) != 0) {
        return diag_set(diag,
                        ERR_DENIED,
                        "the scheduler runs on %s: stop it there",
                        owner->host);
    }
    int pidfd;
    enum err err = exec_watch(owner->pid, owner->start_ticks, &pidfd, diag);
    if (err != ERR_OK) {
        return err == ERR_NOT_FOUND ? ERR_OK : err;
    }
    if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) != 0) {
        err = diag_set(diag,
                       ERR_DENIED,
                       "cannot stop the scheduler (pid %lld)",
                       owner_process(owner));
    }
    (void)close(pidfd);
    return err;
}

bool owner_trusts_peer(int fd, char who[64])
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0) {
        return false;
    }
    (void)snprintf(who, 64, "uid %u pid %d", (unsigned)peer.uid, (int)peer.pid);
    return peer.uid == 0 || peer.uid == getuid();
}
