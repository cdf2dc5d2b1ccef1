/*
 * What a disk may hold after a power failure, from a recording of calls (entry.h).
 *
 * The recording is played up to a position. At any time each file has its durable bytes, and writes
 * that have begun and were not made durable by a sync that began after they had ended. Of those an
 * image has any subset, sector by sector (512 bytes of the file). A sector is written as it is in
 * memory, so if a sector has lost a write, it has also lost the later ones.
 *
 *   size      of a file with unsynced writes: anything from its durable size to its newest one that
 *             the kept sectors fit in; lost sectors of a longer file are zeros
 *   O_DSYNC   a write through such a descriptor makes its own sectors durable, and no others
 *   failure   of a sync, other than EINTR: what it should have written is never made durable by a
 * later one
 *
 * Names (created, renamed, removed, directories made) are durable once their directory was synced.
 * The others are kept or lost, in one of these ways:
 *
 *   in order      a prefix of them, as journals of ext4 and XFS do
 *   one by one    each on its own, as POSIX allows; a rename is kept as a whole or not at all
 *
 * A sync of a file does not make its name durable, although it does so on ext4.
 */
#ifndef VIGIL_TESTS_POWER_DISK_H
#define VIGIL_TESTS_POWER_DISK_H

#include "base/error.h"
#include "base/random.h"

struct disk;

/* Reads the recording. base: a directory with what was durable before; NULL: nothing was. */
MUST_CHECK
enum status disk_open(const char *log_path, const char *base, struct disk **ret_disk,
                      struct error *ret_error);
void disk_free(struct disk *disk);

/* Positions are 0 to this. */
uint64_t disk_end(const struct disk *disk);
/* Plays up to a position, which must not be before the last one. */
void disk_play(struct disk *disk, uint64_t position);

/* Which unsynced writes an image has. */
enum disk_style {
    DISK_NONE,
    DISK_ALL,
    DISK_SECTORS,  /* each sector or not */
    DISK_FEW,      /* few of the sectors */
    DISK_MOST,     /* most of the sectors */
    DISK_WRITES,   /* each write as a whole or not at all */
    DISK_IN_ORDER, /* in order up to the middle of some write */
    DISK_REVERSED, /* the later ones from the middle of some write on */
    DISK_LAST,     /* only the last write of each file */
    DISK_BY_FILE,  /* all of some files, none of others */
    DISK_STYLES
};

struct disk_counts {
    uint64_t writes, writes_lost, sectors, sectors_lost, names, names_lost;
};

/* Makes the directory and writes an image into it. */
MUST_CHECK
enum status disk_image(struct disk *disk, enum disk_style style, struct random *random,
                       const char *path, struct disk_counts *ret_counts, struct error *ret_error);

const char *disk_style_name(enum disk_style style);

#endif
