/* SPDX-License-Identifier: MIT */
/*
 * Delivery of SIGUSR1.
 *
 * A process handles SIGUSR1 if it catches it, or if all of its threads block
 * it: then it reads the signal from a signalfd, as sluice-git does. A process
 * that ignores it has no use for it. In sigwait() the kernel shows the signal
 * as not blocked, so the process appears to die of it; it must rely on the
 * file.
 *
 * A blocked signal may be temporary. posix_spawn() and the like block all
 * signals for a moment, in the parent and in the child, and a SIGUSR1 of that
 * moment would kill them later. Meanwhile the parent sleeps uninterruptibly and
 * the child runs. So a mask counts only if the first thread waits for an event.
 * If a process is misjudged because it is busy just then, its children get the
 * signal, which is right for sluice-git, too.
 *
 * Races. The signal goes through a pidfd that was opened before the status was
 * read, so it can only hit the process that was checked, never another process
 * with the same pid. That process may still change: an exec between the read
 * and the signal drops the handlers, and the signal kills the new program. Only
 * stopping the process prevents that, which its parent would notice. So the
 * status is read twice, the second time right before the signal. A window of
 * microseconds remains, once in the life of a program that sets a handler and
 * then executes another; the attempt then fails, and is retried.
 */
#include "exec/checkpoint.h"

#include "exec/proctree.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    STATUS_BYTES = 16 << 10, /* 1.5 KiB, and a few bytes for each group */
    READS = 2,
};

/* Return the value that follows `name` up to a newline, or NULL. */
static const char *find(const char *text, size_t len, const char *name)
{
    const char *at = memmem(text, len, name, strlen(name));
    if (at == NULL) {
        return NULL;
    }
    at += strlen(name);
    size_t left = len - (size_t)(at - text);
    return memchr(at, '\n', left) != NULL ? at : NULL;
}

/* Whether SIGUSR1 is in a hexadecimal signal set. */
static bool has_signal(const char *digits)
{
    uint64_t set = 0;
    for (; *digits != '\n'; digits++) {
        static const char all[] = "0123456789abcdef";
        const char *digit = memchr(all, *digits, sizeof(all) - 1);
        set = set << 4 | (digit != NULL ? (uint64_t)(digit - all) : 0);
    }
    return (set >> (SIGUSR1 - 1) & 1) != 0;
}

bool checkpoint_read_status(const char *text,
                            size_t len,
                            struct checkpoint_status *out)
{
    /* The name, in the first line, contains no newline. */
    const char *state = find(text, len, "\nState:\t");
    const char *blocked = find(text, len, "\nSigBlk:\t");
    const char *caught = find(text, len, "\nSigCgt:\t");
    if (state == NULL || blocked == NULL || caught == NULL) {
        return false;
    }
    *out = (struct checkpoint_status){
        .caught = has_signal(caught),
        .blocked = has_signal(blocked),
        .sleeps = *state == 'S',
    };
    return true;
}

/* Whether a thread blocks the signal. */
static bool blocks(void *ctx, const char *path)
{
    char text[STATUS_BYTES];
    struct checkpoint_status status;
    (void)ctx;
    size_t len = proctree_read_path(path, text, sizeof(text));
    return checkpoint_read_status(text, len, &status) && status.blocked;
}

/* Whether a process handles the signal. */
static bool handles(pid_t pid)
{
    char text[STATUS_BYTES];
    struct checkpoint_status status;
    size_t len = proctree_read(pid, "status", text, sizeof(text));
    if (!checkpoint_read_status(text, len, &status)) {
        return false;
    }
    return status.caught || (status.blocked && status.sleeps &&
                             proctree_each_thread(pid, "status", blocks, NULL));
}

/* Send the signal to a process that handles it; return false if it does not. */
static bool ask(const struct proctree_process *process)
{
    int fd;
    if (proctree_open(process, &fd) != 0) {
        return false;
    }
    bool asked = true;
    for (int ix = 0; asked && ix < READS; ix++) {
        asked = handles(process->pid);
    }
    asked = asked && syscall(SYS_pidfd_send_signal, fd, SIGUSR1, NULL, 0U) == 0;
    (void)close(fd);
    return asked;
}

uint32_t checkpoint_ask(pid_t pid)
{
    struct proctree tree = {0};
    uint32_t count = 0;
    proctree_add(&tree, pid);
    for (uint32_t ix = 0; ix < tree.count; ix++) {
        if (ask(&tree.items[ix])) {
            count++;
        } else {
            proctree_add_children(&tree, tree.items[ix].pid);
        }
    }
    proctree_release(&tree);
    return count;
}
