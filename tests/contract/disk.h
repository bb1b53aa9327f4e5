/* SPDX-License-Identifier: MIT */
/*
 * disk: what SQLite takes for the disk, and which fails when it is told to.
 *
 * It stands in front of SQLite's own files as its default VFS. It counts what
 * is done to databases and their WAL, lets the n-th of these fail, and can cut
 * the power: everything that was not synced is then lost, sector by sector, as
 * chance has it.
 */
#ifndef TESTS_CONTRACT_DISK_H
#define TESTS_CONTRACT_DISK_H

#include "base/rng.h"

#include <stdbool.h>
#include <stdint.h>

enum disk_fault {
    DISK_SOUND,
    DISK_FULL,       /* from the n-th write on, until disk_heal() */
    DISK_WRITE_EIO,  /* the n-th write */
    DISK_READ_EIO,   /* the n-th read */
    DISK_SYNC_EIO,   /* the n-th sync */
    DISK_OPEN_FAILS, /* the n-th opening */
    DISK_POWER_CUT,  /* at the n-th write, sync or truncation */
};

struct disk;

/* Become SQLite's default, until disk_uninstall(). */
struct disk *disk_install(void);
void disk_uninstall(struct disk *disk);

/* Let the n-th operation of its kind, counted from 1, fail. */
void disk_arm(struct disk *disk, enum disk_fault fault, uint32_t n);

/* Have a cut lose sectors of that size (512 or 4096), by this chance. */
void disk_set_sectors(struct disk *disk, uint32_t bytes, struct rng *rng);

/* No faults from now on. */
void disk_heal(struct disk *disk);

/* Whether the fault that was armed has struck. */
bool disk_has_struck(const struct disk *disk);

#endif /* TESTS_CONTRACT_DISK_H */
