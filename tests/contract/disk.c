/* SPDX-License-Identifier: MIT */
/*
 * For each file there is an image of what is certainly on the disk: its
 * contents at the last sync. A power cut mixes the image with the file as it
 * is now. After that nothing changes the file until the disk is healed, as if
 * the process had ended; it is told that everything fails.
 */
#include "tests/contract/disk.h"

#include "base/invariant.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 8 };

/* What is known of a file, whether it is open or not. */
struct image {
    char *path;
    char *bytes;
    sqlite3_int64 size;
    bool truncated; /* since, to this size at least */
    sqlite3_int64 truncated_size;
};

struct disk {
    sqlite3_vfs vfs; /* first: SQLite hands it back */
    sqlite3_vfs *below;
    enum disk_fault fault;
    uint32_t left; /* operations until it strikes; 0: it has, or is not armed */
    bool struck;
    bool dead;
    uint32_t sector_bytes;
    struct rng *rng;
    struct image images[FILES_MAX];
    uint32_t image_count;
};

struct file {
    sqlite3_file base; /* first: SQLite hands it back */
    struct disk *disk;
    struct image *image; /* NULL: not looked at */
    sqlite3_file *below;
};

static struct disk *disk_of(sqlite3_vfs *vfs)
{
    return (struct disk *)(void *)vfs;
}

static struct file *file_of(sqlite3_file *base)
{
    return (struct file *)(void *)base;
}

/* Whether the fault strikes now; counts operations of its kind. */
static bool strikes(struct disk *disk, enum disk_fault kind)
{
    if (disk->fault != kind) {
        return false;
    }
    if (disk->left > 1) {
        disk->left--;
        return false;
    }
    if (disk->left == 1) {
        disk->left = 0;
        disk->struck = true;
        return true;
    }
    return kind == DISK_FULL && disk->struck;
}

static sqlite3_int64 size_of(struct file *file)
{
    sqlite3_int64 size = 0;
    int rc = file->below->pMethods->xFileSize(file->below, &size);
    INVARIANT(rc == SQLITE_OK);
    return size;
}

static char *read_all(struct file *file, sqlite3_int64 size)
{
    char *bytes = mem_zalloc((size_t)size + 1, 1);
    if (size > 0) {
        int rc = file->below->pMethods->xRead(file->below, bytes, (int)size, 0);
        INVARIANT(rc == SQLITE_OK);
    }
    return bytes;
}

/* What is in the file now is certain. */
static void keep_image(struct file *file)
{
    struct image *image = file->image;
    mem_free(image->bytes);
    image->size = size_of(file);
    image->bytes = read_all(file, image->size);
    image->truncated = false;
}

/* The file as it is now; *size_out is set. */
static char *load(int fd, sqlite3_int64 *size_out)
{
    struct stat status;
    INVARIANT(fstat(fd, &status) == 0);
    char *bytes = mem_zalloc((size_t)status.st_size + 1, 1);
    ssize_t got = pread(fd, bytes, (size_t)status.st_size, 0);
    INVARIANT(got == status.st_size);
    *size_out = status.st_size;
    return bytes;
}

/*
 * Lose of one file what was not synced. It is opened beside SQLite, which ends
 * the locks of this process; but so does a power cut.
 *
 * A file system makes a file shorter in one step of its journal. When that
 * step is lost, so is all that was written later, as it went to new blocks.
 */
static void cut(struct disk *disk, struct image *image)
{
    int fd = open(image->path, O_RDWR | O_CLOEXEC);
    INVARIANT(fd >= 0);
    sqlite3_int64 now_size = 0;
    char *now = load(fd, &now_size);
    sqlite3_int64 sector = disk->sector_bytes;
    bool step_lost = image->truncated && rng_below(disk->rng, 2) == 0;
    if (image->truncated && !step_lost) {
        image->size = image->truncated_size;
    }
    bool keeps_size = !step_lost && rng_below(disk->rng, 2) == 0;
    sqlite3_int64 size = keeps_size ? now_size : image->size;
    char *mixed = mem_zalloc((size_t)size + 1, 1);
    for (sqlite3_int64 at = 0; at < size; at += sector) {
        bool newer = !step_lost && rng_below(disk->rng, 2) == 0;
        sqlite3_int64 from_size = newer ? now_size : image->size;
        sqlite3_int64 end = at + sector < size ? at + sector : size;
        end = end < from_size ? end : from_size;
        if (at < end) {
            memcpy(mixed + at,
                   (newer ? now : image->bytes) + at,
                   (size_t)(end - at));
        }
    }
    INVARIANT(ftruncate(fd, size) == 0);
    INVARIANT(pwrite(fd, mixed, (size_t)size, 0) == size);
    INVARIANT(close(fd) == 0);
    mem_free(mixed);
    mem_free(now);
}

/* Whether the power is, or goes, off. Both files of a database lose. */
static bool is_dark(struct file *file)
{
    struct disk *disk = file->disk;
    if (disk->dead) {
        return true;
    }
    if (!strikes(disk, DISK_POWER_CUT)) {
        return false;
    }
    disk->dead = true;
    for (uint32_t ix = 0; ix < disk->image_count; ix++) {
        cut(disk, &disk->images[ix]);
    }
    return true;
}

static int file_close(sqlite3_file *base)
{
    struct file *file = file_of(base);
    int rc = file->below->pMethods->xClose(file->below);
    mem_free(file->below);
    return rc;
}

static int file_read(sqlite3_file *base, void *out, int count, sqlite3_int64 at)
{
    struct file *file = file_of(base);
    if (file->image != NULL && strikes(file->disk, DISK_READ_EIO)) {
        return SQLITE_IOERR_READ;
    }
    return file->below->pMethods->xRead(file->below, out, count, at);
}

static int
file_write(sqlite3_file *base, const void *from, int count, sqlite3_int64 at)
{
    struct file *file = file_of(base);
    const sqlite3_io_methods *methods = file->below->pMethods;
    if (file->image != NULL) {
        if (is_dark(file) || strikes(file->disk, DISK_WRITE_EIO)) {
            return SQLITE_IOERR_WRITE;
        }
        if (strikes(file->disk, DISK_FULL)) {
            /* As much as there was room for. */
            (void)methods->xWrite(file->below, from, count / 2, at);
            return SQLITE_FULL;
        }
    }
    return methods->xWrite(file->below, from, count, at);
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    struct file *file = file_of(base);
    if (file->image != NULL && is_dark(file)) {
        return SQLITE_IOERR_TRUNCATE;
    }
    struct image *image = file->image;
    if (image != NULL && size < image->size &&
        (!image->truncated || size < image->truncated_size)) {
        image->truncated = true;
        image->truncated_size = size;
    }
    return file->below->pMethods->xTruncate(file->below, size);
}

static int file_sync(sqlite3_file *base, int flags)
{
    struct file *file = file_of(base);
    if (file->image == NULL) {
        return file->below->pMethods->xSync(file->below, flags);
    }
    if (is_dark(file) || strikes(file->disk, DISK_SYNC_EIO)) {
        return SQLITE_IOERR_FSYNC;
    }
    keep_image(file);
    return SQLITE_OK;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *out)
{
    struct file *file = file_of(base);
    return file->below->pMethods->xFileSize(file->below, out);
}

static int file_lock(sqlite3_file *base, int level)
{
    struct file *file = file_of(base);
    return file->below->pMethods->xLock(file->below, level);
}

static int file_unlock(sqlite3_file *base, int level)
{
    struct file *file = file_of(base);
    return file->below->pMethods->xUnlock(file->below, level);
}

static int file_check_reserved(sqlite3_file *base, int *out)
{
    struct file *file = file_of(base);
    return file->below->pMethods->xCheckReservedLock(file->below, out);
}

static int file_control(sqlite3_file *base, int op, void *arg)
{
    struct file *file = file_of(base);
    return file->below->pMethods->xFileControl(file->below, op, arg);
}

static int file_sector_size(sqlite3_file *base)
{
    struct file *file = file_of(base);
    return file->below->pMethods->xSectorSize(file->below);
}

static int file_characteristics(sqlite3_file *base)
{
    struct file *file = file_of(base);
    return file->below->pMethods->xDeviceCharacteristics(file->below);
}

static int file_shm_map(sqlite3_file *base,
                        int region,
                        int bytes,
                        int extend,
                        void volatile **out)
{
    struct file *file = file_of(base);
    return file->below->pMethods->xShmMap(file->below,
                                          region,
                                          bytes,
                                          extend,
                                          out);
}

static int file_shm_lock(sqlite3_file *base, int offset, int count, int flags)
{
    struct file *file = file_of(base);
    return file->below->pMethods->xShmLock(file->below, offset, count, flags);
}

static void file_shm_barrier(sqlite3_file *base)
{
    struct file *file = file_of(base);
    file->below->pMethods->xShmBarrier(file->below);
}

static int file_shm_unmap(sqlite3_file *base, int remove)
{
    struct file *file = file_of(base);
    return file->below->pMethods->xShmUnmap(file->below, remove);
}

static const sqlite3_io_methods file_methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_characteristics,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
};

/* The image of the file that is being opened; what is in it is certain. */
static struct image *
image_of(struct disk *disk, struct file *file, const char *path)
{
    for (uint32_t ix = 0; ix < disk->image_count; ix++) {
        if (strcmp(disk->images[ix].path, path) == 0) {
            return &disk->images[ix];
        }
    }
    INVARIANT(disk->image_count < FILES_MAX);
    struct image *image = &disk->images[disk->image_count++];
    image->path = mem_strndup(path, strlen(path));
    file->image = image;
    keep_image(file);
    return image;
}

static int disk_open(sqlite3_vfs *vfs,
                     const char *path,
                     sqlite3_file *base,
                     int flags,
                     int *flags_out)
{
    struct disk *disk = disk_of(vfs);
    struct file *file = file_of(base);
    *file = (struct file){.disk = disk};
    if ((flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)) != 0 &&
        strikes(disk, DISK_OPEN_FAILS)) {
        errno = EIO;
        return SQLITE_CANTOPEN;
    }
    file->below = mem_zalloc(1, (size_t)disk->below->szOsFile);
    int rc =
        disk->below->xOpen(disk->below, path, file->below, flags, flags_out);
    if (rc != SQLITE_OK) {
        mem_free(file->below);
        return rc;
    }
    /* A database that is being made is renamed when it is whole. */
    if ((flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)) != 0 &&
        strstr(path, ".new") == NULL) {
        file->image = image_of(disk, file, path);
    }
    file->base.pMethods = &file_methods;
    return SQLITE_OK;
}

struct disk *disk_install(void)
{
    struct disk *disk = mem_zalloc(1, sizeof(*disk));
    disk->below = sqlite3_vfs_find(NULL);
    INVARIANT(disk->below != NULL);
    disk->vfs = *disk->below;
    disk->vfs.pNext = NULL;
    disk->vfs.zName = "disk-that-fails";
    disk->vfs.szOsFile = sizeof(struct file);
    disk->vfs.xOpen = disk_open;
    disk->sector_bytes = 512;
    int rc = sqlite3_vfs_register(&disk->vfs, 1);
    INVARIANT(rc == SQLITE_OK);
    return disk;
}

void disk_uninstall(struct disk *disk)
{
    int rc = sqlite3_vfs_unregister(&disk->vfs);
    INVARIANT(rc == SQLITE_OK);
    rc = sqlite3_vfs_register(disk->below, 1);
    INVARIANT(rc == SQLITE_OK);
    for (uint32_t ix = 0; ix < disk->image_count; ix++) {
        mem_free(disk->images[ix].path);
        mem_free(disk->images[ix].bytes);
    }
    mem_free(disk);
}

void disk_arm(struct disk *disk, enum disk_fault fault, uint32_t n)
{
    INVARIANT(n > 0 || fault == DISK_SOUND);
    disk->fault = fault;
    disk->left = n;
    disk->struck = false;
}

void disk_set_sectors(struct disk *disk, uint32_t bytes, struct rng *rng)
{
    disk->sector_bytes = bytes;
    disk->rng = rng;
}

void disk_heal(struct disk *disk)
{
    if (disk->dead) {
        /* What a cut has left is what there is. */
        for (uint32_t ix = 0; ix < disk->image_count; ix++) {
            mem_free(disk->images[ix].path);
            mem_free(disk->images[ix].bytes);
            disk->images[ix] = (struct image){0};
        }
        disk->image_count = 0;
        disk->dead = false;
    }
    disk_arm(disk, DISK_SOUND, 0);
}

bool disk_has_struck(const struct disk *disk)
{
    return disk->struck;
}
